"""What was found out about a revision, written and read again."""

from __future__ import annotations

import pytest

from speculative_operator.api.conditions import Reason
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing

AT = "2026-08-23T10:00:00Z"


@pytest.mark.parametrize(
    "verdict",
    [
        RevisionVerdict(Standing.TRIAL, AT),
        RevisionVerdict(Standing.GOOD, AT),
        RevisionVerdict(Standing.BAD, AT, Reason.CONTAINER_FAILED, "Pod a: exit code 1."),
    ],
)
def test_a_verdict_is_read_as_it_was_written(verdict: RevisionVerdict) -> None:
    """It is all that a new operator knows of a trial."""
    assert RevisionVerdict.read(verdict.annotations()) == verdict


def test_a_bad_revision_names_its_reason_in_the_annotation() -> None:
    """`kubectl get controllerrevisions -o yaml` tells it in one line."""
    verdict = RevisionVerdict(Standing.BAD, AT, Reason.CONTAINER_FAILED)

    assert verdict.annotations()["speculation.dev/verdict"] == "bad: ContainerFailed"


@pytest.mark.parametrize("text", [None, "", "maybe", "Bad: ContainerFailed"])
def test_what_is_not_understood_is_no_verdict(text: str | None) -> None:
    """Somebody edited it, or it was never written."""
    annotations = {} if text is None else {"speculation.dev/verdict": text}

    assert RevisionVerdict.read(annotations) is None


def test_a_bad_revision_stays_bad_under_an_unknown_reason() -> None:
    """A newer operator may have written it before it was rolled back."""
    found = RevisionVerdict.read({"speculation.dev/verdict": "bad: OfAnotherVersion"})

    assert found is not None
    assert (found.standing, found.reason) == (Standing.BAD, Reason.REJECTED)
