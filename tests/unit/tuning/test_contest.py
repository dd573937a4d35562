"""A new revision's goodput beside the running one's, at its best proposal length."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from speculative_operator.tuning.contest import LEAST_STEPS, LEAST_STRETCHES, Contest, contest
from speculative_operator.tuning.window import Window
from tests.support.windows import DEAD, GOOD, NOISY, STEP_MS, Traffic

TENTH = math.log(0.9)
ARMS = (0, 2, 4)
MUCH = dict.fromkeys(ARMS, 400)


def slower(factor: float) -> dict[int, float]:
    """All steps take so many times as long."""
    return {k: ms * factor for k, ms in STEP_MS.items()}


def stretches(
    traffic: Traffic,
    steps: dict[int, int],
    chance: random.Random | None = None,
    *,
    disturbed: float = 0.0,
    count: int = 6,
) -> list[Window]:
    """A minute in so many readings, with all these steps; `disturbed` is the standard deviation of
    what a stretch does to all its step times."""
    found = []
    for _ in range(count):
        factor = math.exp(chance.gauss(0, disturbed)) if chance else 1.0
        times = {k: ms * factor for k, ms in (traffic.step_ms or STEP_MS).items()}
        part = replace(traffic, step_ms=times)
        window = part.window({k: n // count for k, n in steps.items()}, chance)
        found.append(replace(window, seconds=60.0 / count))
    return found


def running(traffic: Traffic, k: int = 4) -> list[Window]:
    """Engines that play one K."""
    return stretches(traffic, {k: 1200})


def test_equal_engines_are_known_to_keep_up() -> None:
    """Else each change would wait for its timeout."""
    found = contest(running(Traffic(GOOD)), stretches(Traffic(GOOD), MUCH), ARMS)

    assert TENTH < found.at_least < 0.0 < found.at_most
    assert found.length == 4


@pytest.mark.parametrize("factor", [1.3, 2.0])
def test_a_much_slower_engine_is_known_to_be(factor: float) -> None:
    """At none of its lengths it comes near."""
    new = stretches(Traffic(GOOD, slower(factor)), MUCH)
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert found.at_most < TENTH


def test_a_small_loss_is_in_doubt() -> None:
    """GPUs of one kind differ as much."""
    new = stretches(Traffic(GOOD, slower(1.12)), MUCH)
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert found.at_least < TENTH < found.at_most


def test_a_better_draft_is_known_to_be_faster() -> None:
    """A noisy one before, an identical one now."""
    found = contest(running(Traffic(NOISY), 1), stretches(Traffic(GOOD), MUCH), ARMS)

    assert found.at_least > math.log(1.2)
    assert found.length == 4


def test_a_dead_draft_loses_at_its_best_length_too() -> None:
    """Plain decoding is what is left of it."""
    found = contest(running(Traffic(GOOD)), stretches(Traffic(DEAD), MUCH), ARMS)

    assert found.at_most < TENTH
    assert found.length == 0


def test_the_start_length_alone_rejects_nothing() -> None:
    """Tuning would leave it at once: each length must have been timed."""
    new = stretches(Traffic(NOISY), {4: 1200})
    found = contest(running(Traffic(NOISY), 1), new, ARMS)

    assert found.at_most == math.inf


def test_few_steps_say_nothing() -> None:
    """In either direction."""
    new = stretches(Traffic(DEAD), dict.fromkeys(ARMS, LEAST_STEPS - 1))
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert (found.length, found.at_least, found.at_most) == (0, -math.inf, math.inf)


def test_few_stretches_say_nothing_however_many_steps_they_have() -> None:
    """Steps in a row are alike: a neighbour or a kind of prompts lasts for all of them."""
    few = math.ceil(LEAST_STRETCHES) - 1
    new = stretches(Traffic(DEAD), dict.fromkeys(ARMS, 5000), count=few)
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert (found.at_least, found.at_most) == (-math.inf, math.inf)


def test_a_stretch_of_nearly_all_steps_is_hardly_more_than_one() -> None:
    """The others tell too little of how far stretches lie apart."""
    new = stretches(Traffic(DEAD), dict.fromkeys(ARMS, 12), count=6)
    new += stretches(Traffic(DEAD), dict.fromkeys(ARMS, 2000), count=1)
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert (found.at_least, found.at_most) == (-math.inf, math.inf)


def test_the_running_engine_is_held_against_at_its_best_though_it_plays_another_length() -> None:
    """Soon after its start tuning still looks; else an unrelated draft would keep up with it."""
    looking = stretches(Traffic(GOOD), {0: 1200, 4: 120})
    found = contest(looking, stretches(Traffic(DEAD), MUCH), ARMS)

    assert found.at_most < TENTH


def test_cells_of_few_steps_count_together() -> None:
    """Requests come and go, so no batch size has many steps of a length that is only tried."""
    old = [w for batch in (1, 2, 3, 4) for w in running(Traffic(GOOD, batch=batch))]
    few = {4: 120, 0: 24, 2: 24}
    new = [w for batch in (1, 2, 3, 4) for w in stretches(Traffic(DEAD, batch=batch), few)]
    found = contest(old, new, ARMS)

    assert found.at_most < TENTH


def test_an_engine_that_loses_at_a_larger_batch_is_slower() -> None:
    """It is so slow that requests pile up there: the sizes never meet."""
    new = stretches(Traffic(GOOD, slower(8.0), batch=8), MUCH)
    found = contest(running(Traffic(GOOD, batch=2)), new, ARMS)

    assert found.at_most < TENTH
    assert found.at_least == -math.inf


def test_an_engine_that_keeps_up_at_a_smaller_batch_is_as_fast() -> None:
    """It is so fast that fewer requests are with it at a time."""
    new = stretches(Traffic(GOOD, slower(0.1), batch=2), MUCH)
    found = contest(running(Traffic(GOOD, batch=8)), new, ARMS)

    assert found.at_least > 0.0
    assert found.at_most == math.inf


def test_a_larger_batch_alone_makes_no_engine_fast() -> None:
    """Its goodput is higher whatever the engine: only the running one at a larger batch would
    tell."""
    new = stretches(Traffic(GOOD, batch=8), MUCH)
    found = contest(running(Traffic(GOOD, batch=2)), new, ARMS)

    assert found.at_least == -math.inf
    assert found.at_most > TENTH


@pytest.mark.parametrize("disturbed", [0.0, 0.2])
@pytest.mark.parametrize(
    ("factor", "wrong"), [(1.0, "rejected"), (1 / 0.9, "rejected"), (1 / 0.9, "promoted")]
)
def test_chance_decides_wrongly_in_one_of_twenty(
    factor: float, wrong: str, disturbed: float
) -> None:
    """Which is what 95 % promises, for a calm machine and for one on which each stretch is another;
    at most at the very bound."""
    chance, errors = random.Random(7), 0
    for _ in range(200):
        old = stretches(Traffic(GOOD), {4: 400}, chance, disturbed=disturbed)
        new = stretches(
            Traffic(GOOD, slower(factor)), dict.fromkeys(ARMS, 60), chance, disturbed=disturbed
        )
        found = contest(old, new, ARMS)
        rejected, promoted = found.at_most < TENTH, found.at_least > TENTH
        errors += rejected if wrong == "rejected" else promoted
    assert errors <= 14


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, "rejected"), (1.25, "promoted")])
def test_looking_again_and_again_does_not_wait_for_a_lucky_moment(
    factor: float, wrong: str
) -> None:
    """A trial is looked at with each reading, and the first sure answer ends it."""
    chance, errors = random.Random(11), 0
    slow = slower(factor)
    for _ in range(60):
        old = stretches(Traffic(GOOD), {4: 3000}, chance, disturbed=0.2, count=30)
        new = stretches(
            Traffic(GOOD, slow), dict.fromkeys(ARMS, 600), chance, disturbed=0.2, count=30
        )
        found = [contest(old[:n], new[:n], ARMS) for n in range(3, 31, 3)]
        first = next((each for each in found if _decides(each)), None)
        if first is not None:
            errors += first.at_most < TENTH if wrong == "rejected" else first.at_least > TENTH
    assert errors <= 6


def _decides(found: Contest) -> bool:
    return found.at_most < TENTH or found.at_least > TENTH
