"""Which K has the highest measured goodput."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from speculative_operator.tuning.acceptance import Estimate
from speculative_operator.tuning.cost import Cost, StepTime
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.rule import Option, best, options
from tests.support.windows import NOISY, STEP_MS, a_policy

LENGTHS = {k: Estimate(math.log(1 + sum(NOISY[:k])), 0.005**2) for k in range(5)}


def cost(ms: dict[int, float] | None = None, held: frozenset[int] = frozenset()) -> Cost:
    """Well measured step times."""
    times = [StepTime(k, math.log(v * 1000), 0.01**2) for k, v in (ms or STEP_MS).items()]
    cost = Cost.start((1, 2, 3, 4), SEQUENTIAL)
    for _ in range(3):
        cost = cost.after({4: times}, SEQUENTIAL)
    return replace(cost, held=held)


def found(now: int, **policy: object) -> dict[int, Option]:
    return {o.k: o for o in options(now, cost(), LENGTHS, a_policy(**policy))}


def test_the_gain_is_the_quotient_of_goodputs() -> None:
    """E(K)/T(K) against that of the K in force."""
    gain = found(4)[2].gain

    expected = (1.99 / 15.0) / (2.34 / 23.0)
    assert math.exp(gain) == pytest.approx(expected, rel=0.02)


def test_plain_decoding_is_given_the_minimum_gain_on_top() -> None:
    """A little less while speculation is on."""
    off, on = found(1)[0], found(0)[1]

    assert off.gain - off.plain == pytest.approx(math.log(1.05) - 0.02)
    assert on.gain - on.plain == pytest.approx(-math.log(1.05))


def test_lengths_outside_the_bounds_are_no_options() -> None:
    """The user has excluded them."""
    assert set(found(4, low=1, high=3)) == {1, 2, 3}


def test_without_any_draft_there_are_no_options() -> None:
    """Nothing can be compared."""
    assert options(4, cost(), {0: Estimate(0.0, 0.0)}, a_policy()) == ()


def option(k: int, gain: float, error: float = 0.005, measured: bool = True) -> Option:
    return Option(k, gain, gain, error, measured, doubted=False)


@pytest.mark.parametrize(
    ("candidates", "winner"),
    [
        ((option(1, 0.2), option(2, 0.3)), 2),
        ((option(1, 0.007),), None),
        ((option(1, -0.2), option(2, -0.1)), None),
        ((option(1, 0.1, measured=False),), None),
        ((option(1, 0.1, measured=False), option(2, 0.05)), 2),
        ((), None),
    ],
)
def test_the_known_one_that_brings_most_wins(
    candidates: tuple[Option, ...], winner: int | None
) -> None:
    """A gain within the hysteresis is no reason to change."""
    chosen = best(candidates)

    assert (chosen.k if chosen else None) == winner


def test_a_length_in_doubt_is_not_chosen() -> None:
    """Its last time contradicted what was known; it is asked again first."""
    doubted = options(4, cost(held=frozenset({2})), LENGTHS, a_policy())
    by_length = {o.k: o for o in doubted}

    assert by_length[2].doubted
    assert best((by_length[2],)) is None
