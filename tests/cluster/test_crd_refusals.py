"""What the API server refuses, in the words that kubectl prints, beside what it accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import CopiedKind
from tests.cluster.refusals.lengths import LENGTH_REFUSALS, TABLE_REFUSALS, TUNING_REFUSALS
from tests.cluster.refusals.methods import METHOD_REFUSALS, OPTION_REFUSALS
from tests.cluster.refusals.placement import HARDWARE_REFUSALS, SOURCE_REFUSALS
from tests.cluster.refusals.refusal import spec
from tests.cluster.refusals.rollouts import ROLLOUT_REFUSALS, TRIAL_REFUSALS
from tests.cluster.refusals.runtime import ARGUMENT_REFUSALS, ENVIRONMENT_REFUSALS, POD_REFUSALS
from tests.support.kubectl import Kubectl
from tools.generate import CRD

REFUSALS = (
    *LENGTH_REFUSALS,
    *TABLE_REFUSALS,
    *METHOD_REFUSALS,
    *OPTION_REFUSALS,
    *TUNING_REFUSALS,
    *SOURCE_REFUSALS,
    *HARDWARE_REFUSALS,
    *ARGUMENT_REFUSALS,
    *ENVIRONMENT_REFUSALS,
    *POD_REFUSALS,
    *ROLLOUT_REFUSALS,
    *TRIAL_REFUSALS,
)


@pytest.fixture(scope="module")
def complaints(kubectl: Kubectl, copied_kind: CopiedKind) -> Mapping[str, str]:
    """What kubectl said to every refused object and its neighbour, by the object's name.

    One call for all: kubectl goes on after a refusal. Nothing is stored.
    """
    objects = []
    for number, refusal in enumerate(REFUSALS):
        objects.append(copied_kind.model(f"refused-{number}", spec(refusal.refused)))
        objects.append(copied_kind.model(f"accepted-{number}", spec(refusal.accepted)))
    said = kubectl.attempt("create", "-f", "-", "--dry-run=server", objects=tuple(objects))
    return {**_accepted(said.output), **_refused(said.complaint)}


def _accepted(output: str) -> dict[str, str]:
    names = re.findall(r"/((?:refused|accepted)-\d+) created", output)
    return dict.fromkeys(names, "")


def _refused(complaint: str) -> dict[str, str]:
    """kubectl names the object in each message."""
    messages = re.split(r"^(?=Error from server|The )", complaint, flags=re.MULTILINE)
    found = ((re.search(r"(?:refused|accepted)-\d+", each), each) for each in messages)
    return {name.group(): " ".join(each.split()) for name, each in found if name}


@pytest.mark.parametrize("number", range(len(REFUSALS)), ids=lambda number: REFUSALS[number].name)
def test_a_broken_object_is_refused_with_what_to_write_instead(
    complaints: Mapping[str, str], number: int
) -> None:
    """A user who mistypes learns it from kubectl, not from a pod that fails 40 seconds later."""
    refusal = REFUSALS[number]

    assert re.search(refusal.words, complaints[f"refused-{number}"])
    assert complaints[f"accepted-{number}"] == ""


def rule_messages(node: Any) -> Iterator[str]:
    """The words of every rule in a schema, as regular expressions where values stand in them."""
    if isinstance(node, list):
        for each in node:
            yield from rule_messages(each)
    if isinstance(node, dict):
        for rule in node.get("x-kubernetes-validations", ()):
            told = rule.get("messageExpression", "").rsplit('".format([', 1)[0].removeprefix('"')
            words = re.escape(rule.get("message") or told)
            yield words.replace("%d", r"\d+").replace("%s", ".+")
        for key, each in node.items():
            if key != "x-kubernetes-validations":
                yield from rule_messages(each)


@pytest.mark.parametrize(
    "words", sorted(set(rule_messages(yaml.safe_load(CRD.read_text())["spec"])))
)
def test_every_rule_is_seen_to_refuse(complaints: Mapping[str, str], words: str) -> None:
    """A rule that no object was ever refused by may be one that refuses nothing."""
    assert any(re.search(words, said) for said in complaints.values())
