"""Whether two revisions say the same: only a difference counts where the engine was sure."""

from __future__ import annotations

import random

import pytest

from speculative_operator.plan.continuations import (
    LENGTH,
    PROMPTS,
    Agreement,
    Continuation,
    ReferenceOutput,
    Tokens,
    agreement,
)

SURE, NEAR = 3.0, 0.1
TOLERANCE = 0.5
SAID: Tokens = (1, 2, 3)
OTHER: Tokens = (1, 2, 9)


def reference(*wavering: int) -> ReferenceOutput:
    """The running revision, which says something else the second time to some prompts."""
    second = tuple(OTHER if n in wavering else SAID for n in range(len(PROMPTS)))
    return ReferenceOutput((SAID,) * len(PROMPTS), second)


def answers(*different: int, gaps: tuple[float, ...] = ()) -> tuple[Continuation, ...]:
    """To each prompt the same, but for some."""
    return tuple(
        Continuation((1, 8, 9), gaps, (7, 2, 3)) if n in different else Continuation(SAID)
        for n in range(len(PROMPTS))
    )


@pytest.mark.parametrize(
    ("gaps", "agreed"),
    [
        ((SURE, SURE, SURE), 5),
        ((SURE, NEAR, SURE), 6),
        ((NEAR, SURE, NEAR), 5),
        ((SURE, 0.5, SURE), 6),
        ((), 5),
    ],
)
def test_the_first_other_token_counts_where_the_engine_was_sure(
    gaps: tuple[float, ...], agreed: int
) -> None:
    """Kernels differ in near ties, and behind the first difference nothing can be compared."""
    assert agreement(reference(), answers(0, gaps=gaps), TOLERANCE).agreed == agreed


def test_an_engine_that_is_sure_of_nothing_is_in_no_tie_with_another_token() -> None:
    """A broken kernel has all tokens alike, and others in front than the running revision said."""
    flat = tuple(Continuation((4, 5, 6), (0.0, 0.0, 0.0), (7, 8, 9)) for _ in PROMPTS)

    found = agreement(reference(), flat, TOLERANCE)

    assert (found.steady, found.agreed, found.same) == (6, 0, False)


@pytest.mark.parametrize(("noise", "least", "most"), [(0.02, 0.0, 0.0), (4.0, 0.9, 1.0)])
def test_the_gap_of_the_engine_on_trial_tells_as_much_as_that_of_the_running_one(
    noise: float, least: float, most: float
) -> None:
    """Rounding moves near ties alone, a wrong kernel also others: by either engine's gaps the same
    share of engines is found to differ."""
    chance = random.Random(3)
    by_trial = by_running = 0
    for _ in range(20):
        pairs = [engines(chance, noise) for _ in PROMPTS]
        for judge in (0, 1):
            said = tuple(pair[1 - judge].tokens for pair in pairs)
            judged = tuple(pair[judge] for pair in pairs)
            differs = not agreement(ReferenceOutput(said, said), judged, TOLERANCE).same
            by_running += differs and judge == 0
            by_trial += differs and judge == 1

    assert least <= by_running / 20 <= most
    assert least <= by_trial / 20 <= most


def engines(chance: random.Random, noise: float) -> tuple[Continuation, Continuation]:
    """What a sound engine and one with noise on its logits say and how sure they are. A few places
    in a hundred are near ties, as in text."""
    told: tuple[list[tuple[int, float, int]], ...] = ([], [])
    for _ in range(LENGTH):
        logits = [chance.gauss(0, 3) for _ in range(50)]
        other = [logit + chance.gauss(0, noise) for logit in logits]
        for found, mine in zip(told, (logits, other), strict=True):
            best, second = sorted(range(50), key=lambda token: -mine[token])[:2]
            found.append((best, mine[best] - mine[second], second))
    one, two = (
        Continuation(*(tuple(column) for column in zip(*found, strict=True))) for found in told
    )
    return one, two


@pytest.mark.parametrize(
    ("different", "same"), [((), True), ((0,), True), ((0, 1, 2), True), ((0, 1, 2, 3), False)]
)
def test_most_prompts_must_come_out_differently(different: tuple[int, ...], same: bool) -> None:
    """One of six may be a tie that the tolerance did not catch."""
    found = agreement(reference(), answers(*different), TOLERANCE)

    assert (found.steady, found.agreed) == (6, 6 - len(different))
    assert found.same is same


def test_a_prompt_on_which_the_running_revision_wavers_says_nothing() -> None:
    """It is left out on both sides."""
    found = agreement(reference(0, 1), answers(0, 1, 2), TOLERANCE)

    assert (found.steady, found.agreed, found.same) == (4, 3, True)


def test_wavering_in_a_near_tie_is_none() -> None:
    """Under load the running engine's kernels differ from request to request. The engine on trial,
    which came there by the same tokens, says that it is one; and both answers are right."""
    near = tuple(Continuation(OTHER, (SURE, SURE, NEAR), (7, 8, 3)) for _ in PROMPTS)
    found = agreement(reference(0, 1, 2, 3), near, TOLERANCE)

    assert (found.steady, found.agreed) == (6, 6)


def test_a_running_revision_that_wavers_on_most_prompts_proves_nothing() -> None:
    """Then nothing is held against the new one."""
    found = agreement(reference(0, 1, 2), answers(3, 4, 5), TOLERANCE)

    assert found.same
    assert found == Agreement(prompts=6, steady=3, agreed=0)
    assert "proves nothing" in found.words


def test_both_agreements_are_told() -> None:
    """A user can tell a model that wavers from a revision that differs."""
    found = agreement(reference(5), answers(0), TOLERANCE)

    assert found.words == (
        "The running revision agrees with itself in 5 of 6 prompts, and the new one with it in 4 "
        "of these."
    )


def test_only_another_answer_leaves_doubt() -> None:
    """Where all three are equal it does not matter how sure anybody was."""
    said = reference(1)

    assert not said.leaves_doubt(0, SAID)
    assert said.leaves_doubt(0, OTHER)
    assert said.leaves_doubt(1, SAID)


@pytest.mark.parametrize("written", [reference(1), ReferenceOutput(missing="It wants a key.")])
def test_a_reference_is_read_as_it_was_written(written: ReferenceOutput) -> None:
    """Where the running revision had to go first, nobody can ask it again."""
    assert ReferenceOutput.read(written.to_json()) == written


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"first":[1]}', '{"first":[["x"]]}'])
def test_what_was_not_written_so_is_no_reference(text: str | None) -> None:
    """Then it is taken again."""
    assert ReferenceOutput.read(text) is None
