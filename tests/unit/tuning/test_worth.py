"""What a look is worth: the knowledge gradient, and its cost."""

from __future__ import annotations

import math
import random

import pytest

from speculative_operator.tuning.absorb import absorbed
from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.cost import Cost, StepTime
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.worth import Prospect, expected_rise, prospects
from tests.support.windows import NOISY, STEP_MS, a_policy

LENGTHS = {k: Estimate(math.log(1 + sum(NOISY[:k])), 0.005**2) for k in range(5)}


def known(*lengths: int, windows: int = 1) -> Cost:
    """A cost after windows in which these K were timed."""
    cost = Cost.start((1, 2, 3, 4), SEQUENTIAL)
    times = [StepTime(k, math.log(STEP_MS[k] * 1000), 0.02**2) for k in lengths]
    for _ in range(windows):
        cost = absorbed(cost, {4: times}, SEQUENTIAL)
    return cost


def look_at(k: int, cost: Cost, now: int = 4) -> Prospect:
    return next(look for look in prospects(now, cost, LENGTHS, a_policy()) if look.k == k)


@pytest.mark.parametrize("seed", range(5))
def test_the_rise_is_the_expected_maximum_less_the_maximum(seed: int) -> None:
    """Against drawing it."""
    chance = random.Random(seed)
    means = [chance.gauss(0, 0.1) for _ in range(6)]
    moves = [chance.gauss(0, 0.1) for _ in range(6)]
    drawn = [
        max(mean + move * z for mean, move in zip(means, moves, strict=True))
        for z in (chance.gauss(0, 1) for _ in range(100_000))
    ]

    assert expected_rise(means, moves) == pytest.approx(
        sum(drawn) / len(drawn) - max(means), abs=0.001
    )


def test_what_moves_all_alike_is_worth_nothing() -> None:
    """The same K stays best."""
    assert expected_rise([0.0, 0.1, 0.2], [0.3, 0.3, 0.3]) == pytest.approx(0.0)


def test_what_is_far_behind_and_well_known_is_worth_nothing() -> None:
    """No result of the look would change the choice."""
    assert expected_rise([0.0, -1.0], [0.0, 0.05]) == 0.0


def test_a_look_costs_what_the_tried_length_brings_less() -> None:
    """Over the share of the window that it takes."""
    look = look_at(0, known(0, 4, windows=10))
    gap = math.log(1 / 9.6) - math.log((1 + sum(NOISY)) / 23.0)

    assert look.gap == pytest.approx(gap, abs=0.05)
    assert 0 <= look.cost < 0.1 * 0.2


def test_an_unknown_length_is_worth_a_look_and_a_known_one_is_not() -> None:
    """After many looks nothing is left to find out."""
    assert look_at(0, known(4)).net > 0
    assert look_at(1, known(0, 1, 2, 3, 4, windows=50), now=2).net < 0


def test_a_contradiction_is_worth_a_look() -> None:
    """Was it an outlier?"""
    cost = known(0, 1, 2, 3, 4, windows=20)
    slow = [StepTime(k, math.log(STEP_MS[k] * 1000 * (2 if k == 2 else 1)), 4e-4) for k in STEP_MS]
    held = absorbed(cost, {4: slow}, SEQUENTIAL)

    assert held.held == {2}
    assert look_at(2, held).worth > look_at(2, cost).worth
