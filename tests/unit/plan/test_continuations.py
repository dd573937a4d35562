"""Whether two revisions say the same: only a difference counts where the running one was sure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from speculative_operator.plan.continuations import (
    PROMPTS,
    Agreement,
    Continuation,
    ReferenceOutput,
    agreement,
    differs,
)

SURE, NEAR = 3.0, 0.1
TOLERANCE = 0.5


def said(words: str, gaps: Sequence[float] | None = None) -> Continuation:
    """One token a word; sure of each if nothing else is said."""
    tokens = tuple(words.split())
    return Continuation(tokens, tuple(gaps) if gaps is not None else (SURE,) * len(tokens))


@pytest.mark.parametrize(
    ("gaps", "other", "expected"),
    [
        ((SURE, SURE, SURE), "a b c", False),
        ((SURE, SURE, SURE), "a b x", True),
        ((SURE, SURE, NEAR), "a b x", False),
        ((SURE, NEAR, SURE), "a x y", False),
        ((SURE, NEAR, SURE), "x b c", True),
        ((SURE, SURE, 0.5), "a b x", False),
        ((SURE, SURE, SURE), "a b", True),
    ],
)
def test_the_first_other_token_counts_where_the_reference_was_sure(
    gaps: tuple[float, ...], other: str, expected: bool
) -> None:
    """Kernels differ in near ties, and behind the first difference nothing can be compared."""
    assert differs(said("a b c", gaps), said(other), TOLERANCE) is expected


def answers(*different: int) -> tuple[Continuation, ...]:
    """To each prompt the same, but for some."""
    return tuple(said("x y z" if n in different else "a b c") for n in range(len(PROMPTS)))


@pytest.mark.parametrize(
    ("different", "same"), [((), True), ((0,), True), ((0, 1, 2), True), ((0, 1, 2, 3), False)]
)
def test_most_prompts_must_come_out_differently(different: tuple[int, ...], same: bool) -> None:
    """One of six may be a tie that the tolerance did not catch."""
    found = agreement(ReferenceOutput(answers(), answers()), answers(*different), TOLERANCE)

    assert (found.steady, found.agreed) == (6, 6 - len(different))
    assert found.same is same


def test_a_prompt_on_which_the_running_revision_wavers_says_nothing() -> None:
    """It is left out on both sides."""
    found = agreement(ReferenceOutput(answers(), answers(0, 1)), answers(0, 1, 2), TOLERANCE)

    assert (found.steady, found.agreed, found.same) == (4, 3, True)


def test_a_running_revision_that_wavers_on_most_prompts_proves_nothing() -> None:
    """Then nothing is held against the new one."""
    found = agreement(ReferenceOutput(answers(), answers(0, 1, 2)), answers(3, 4, 5), TOLERANCE)

    assert found.same
    assert found == Agreement(prompts=6, steady=3, agreed=0)
    assert "proves nothing" in found.words


def test_both_agreements_are_told() -> None:
    """A user can tell a model that wavers from a revision that differs."""
    found = agreement(ReferenceOutput(answers(), answers(5)), answers(0), TOLERANCE)

    assert found.words == (
        "The running revision agrees with itself in 5 of 6 prompts, and the new one with it in 4 "
        "of these."
    )


@pytest.mark.parametrize(
    "reference",
    [ReferenceOutput(answers(), answers(1)), ReferenceOutput(missing="The engine wants a key.")],
)
def test_a_reference_is_read_as_it_was_written(reference: ReferenceOutput) -> None:
    """Where the running revision had to go first, nobody can ask it again."""
    assert ReferenceOutput.read(reference.to_json()) == reference


def test_a_reference_fits_into_an_annotation() -> None:
    """All of an object's annotations may be 256 KiB."""
    long = tuple(Continuation(("123456",) * 32, (12.345678,) * 32) for _ in PROMPTS)

    assert len(ReferenceOutput(long, long).to_json()) < 16_384


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"first":[[1]]}'])
def test_what_was_not_written_so_is_no_reference(text: str | None) -> None:
    """Then it is taken again."""
    assert ReferenceOutput.read(text) is None
