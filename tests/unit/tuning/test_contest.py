"""A new revision's goodput beside the running one's, at its best proposal length."""

from __future__ import annotations

import math
import random

import pytest

from speculative_operator.tuning.contest import LEAST_STEPS, contest
from speculative_operator.tuning.window import Window, merged
from tests.support.windows import DEAD, GOOD, NOISY, STEP_MS, Traffic

TENTH = math.log(0.9)
ARMS = (0, 2, 4)
MUCH = dict.fromkeys(ARMS, 400)


def slower(factor: float) -> dict[int, float]:
    """All steps take so many times as long."""
    return {k: ms * factor for k, ms in STEP_MS.items()}


def minutes(window: Window) -> Window:
    """The same steps spread over a minute, in which prompts of many kinds came."""
    return merged([window, Window(seconds=60.0, replicas=0)])


def running(traffic: Traffic, k: int = 4) -> Window:
    """Engines that play one K."""
    return minutes(traffic.window({k: 1000}))


def test_equal_engines_are_known_to_keep_up() -> None:
    """Else each change would wait for its timeout."""
    found = contest(running(Traffic(GOOD)), minutes(Traffic(GOOD).window(MUCH)), ARMS)

    assert TENTH < found.at_least < 0.0 < found.at_most
    assert found.length == 4


@pytest.mark.parametrize("factor", [1.3, 2.0])
def test_a_much_slower_engine_is_known_to_be(factor: float) -> None:
    """At none of its lengths it comes near."""
    new = minutes(Traffic(GOOD, slower(factor)).window(MUCH))
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert found.at_most < TENTH


def test_a_small_loss_is_in_doubt() -> None:
    """GPUs of one kind differ as much."""
    new = minutes(Traffic(GOOD, slower(1.12)).window(MUCH))
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert found.at_least < TENTH < found.at_most


def test_a_better_draft_is_known_to_be_faster() -> None:
    """A noisy one before, an identical one now."""
    found = contest(running(Traffic(NOISY), 1), minutes(Traffic(GOOD).window(MUCH)), ARMS)

    assert found.at_least > math.log(1.2)
    assert found.length == 4


def test_a_dead_draft_loses_at_its_best_length_too() -> None:
    """Plain decoding is what is left of it."""
    found = contest(running(Traffic(GOOD)), minutes(Traffic(DEAD).window(MUCH)), ARMS)

    assert found.at_most < TENTH
    assert found.length == 0


def test_the_start_length_alone_rejects_nothing() -> None:
    """Tuning would leave it at once: each length must have been timed."""
    new = minutes(Traffic(NOISY).window({4: 1000}))
    found = contest(running(Traffic(NOISY), 1), new, ARMS)

    assert found.at_most == math.inf


def test_few_steps_say_nothing() -> None:
    """In either direction."""
    new = minutes(Traffic(DEAD).window(dict.fromkeys(ARMS, LEAST_STEPS - 1)))
    found = contest(running(Traffic(GOOD)), new, ARMS)

    assert (found.length, found.at_least, found.at_most) == (0, -math.inf, math.inf)


def test_an_engine_that_loses_at_a_larger_batch_is_slower() -> None:
    """It is so slow that requests pile up there: the sizes never meet."""
    new = minutes(Traffic(GOOD, slower(8.0), batch=8).window(MUCH))
    found = contest(running(Traffic(GOOD, batch=2)), new, ARMS)

    assert found.at_most < TENTH
    assert found.at_least == -math.inf


def test_an_engine_that_keeps_up_at_a_smaller_batch_is_as_fast() -> None:
    """It is so fast that fewer requests are with it at a time."""
    new = minutes(Traffic(GOOD, slower(0.1), batch=2).window(MUCH))
    found = contest(running(Traffic(GOOD, batch=8)), new, ARMS)

    assert found.at_least > 0.0
    assert found.at_most == math.inf


def test_a_larger_batch_alone_makes_no_engine_fast() -> None:
    """Its goodput is higher whatever the engine: only the running one at a larger batch would
    tell."""
    new = minutes(Traffic(GOOD, batch=8).window(MUCH))
    found = contest(running(Traffic(GOOD, batch=2)), new, ARMS)

    assert found.at_least == -math.inf
    assert found.at_most > TENTH


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, "rejected"), (1.4, "promoted")])
def test_chance_decides_wrongly_less_than_once_in_twenty(factor: float, wrong: str) -> None:
    """Which is what 95 % promises."""
    chance, errors = random.Random(7), 0
    for _ in range(200):
        old = minutes(Traffic(GOOD).window({4: 400}, chance))
        new = minutes(Traffic(GOOD, slower(factor)).window(dict.fromkeys(ARMS, 60), chance))
        found = contest(old, new, ARMS)
        rejected, promoted = found.at_most < TENTH, found.at_least > TENTH
        errors += rejected if wrong == "rejected" else promoted
    assert errors < 10
