"""Which K the objective asks for, by measured goodput and step time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from speculative_operator.tuning.absorb import absorbed
from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.cost import Cost, StepTime
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.rule import Option, best, contended, options
from tests.support.windows import NOISY, STEP_MS, a_policy

LENGTHS = {k: Estimate(math.log(1 + sum(NOISY[:k])), 0.005**2) for k in range(5)}


def cost(ms: dict[int, float] | None = None, held: frozenset[int] = frozenset()) -> Cost:
    """Well measured step times."""
    times = [StepTime(k, math.log(v * 1000), 0.01**2) for k, v in (ms or STEP_MS).items()]
    cost = Cost.start((1, 2, 3, 4), SEQUENTIAL)
    for _ in range(3):
        cost = absorbed(cost, {4: times}, SEQUENTIAL)
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
    return Option(k, gain, gain, 0.0, error, measured, doubted=False)


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
    chosen = best(candidates, a_policy())

    assert (chosen.k if chosen else None) == winner


def test_a_length_in_doubt_is_not_chosen() -> None:
    """Its last time contradicted what was known; it is asked again first."""
    doubted = options(4, cost(held=frozenset({2})), LENGTHS, a_policy())
    by_length = {o.k: o for o in doubted}

    assert by_length[2].doubted
    assert best((by_length[2],), a_policy()) is None


ZERO = Option(0, 0.1, -0.1, step=0.05, error=0.02, measured=True, doubted=False)
"""Its steps are surely longer than those of the K in force."""


@pytest.mark.parametrize(
    ("zero", "winner"),
    [
        (ZERO._replace(step=-0.2), 0),
        (ZERO._replace(step=0.03), 0),
        (ZERO._replace(gain=-0.1), None),
        (ZERO._replace(gain=-0.1, alone=True), 0),
        (ZERO._replace(gain=-0.1, doubted=True), 0),
        (ZERO._replace(gain=-0.1, measured=False), 0),
    ],
)
def test_a_draft_given_up_proposes_nothing_unless_such_steps_are_surely_longer(
    zero: Option, winner: int | None
) -> None:
    """It is told to be faulty: the noise of step times is no reason to wait. What is known for
    sure is one: steps at K=0 may miss the graphs that others have."""
    chosen = best((zero, option(1, -0.1)), a_policy(), given_up=True)

    assert (chosen.k if chosen else None) == winner


def test_a_draft_given_up_proposes_again_only_where_steps_are_surely_shorter_with_it() -> None:
    """K=0 in force."""
    longer = option(2, 0.05)._replace(step=0.01)
    shorter = option(1, 0.03, error=0.02)._replace(step=-0.05)

    assert best((longer,), a_policy(), given_up=True) is None
    assert best((longer, shorter), a_policy(), given_up=True) == shorter


# Objective Latency.


def stepping(k: int, gain: float, step: float) -> Option:
    return Option(k, gain, gain, step, 0.005, measured=True, doubted=False)


LONG, MIDDLE, SHORT = stepping(7, 0.04, 0.3), stepping(3, -0.03, -0.2), stepping(1, -0.2, -0.4)
"""Against K=5 in force."""


@pytest.mark.parametrize(
    ("candidates", "loss", "winner"),
    [
        ((LONG, MIDDLE, SHORT), 0.10, 3),
        ((LONG, MIDDLE, SHORT), 0.30, 1),
        ((LONG, MIDDLE, SHORT), 0.05, None),
        ((LONG, MIDDLE, SHORT), 0.02, 7),
        ((MIDDLE, SHORT), 0.05, 3),
        ((MIDDLE, SHORT), 0.02, None),
        ((stepping(3, -0.03, -0.005),), 0.05, None),
    ],
)
def test_latency_takes_the_shortest_steps_within_the_loss(
    candidates: tuple[Option, ...], loss: float, winner: int | None
) -> None:
    """The loss is against the best K, not against the one in force: small steps must not add up."""
    chosen = best(candidates, a_policy(throughput_loss=loss))

    assert (chosen.k if chosen else None) == winner


def test_latency_leaves_a_length_that_falls_out_of_the_loss_only_well_beyond_where_it_entered() -> (
    None
):
    """Noise alone must not move K to and fro."""
    policy = a_policy(throughput_loss=0.05)
    at_the_limit = -math.log(0.95)

    enters = best((stepping(3, -at_the_limit + 0.009, -0.2),), policy)
    stays = best((stepping(5, at_the_limit - 0.001, 0.2),), policy)
    leaves = best((stepping(5, at_the_limit + 0.001, 0.2),), policy)

    assert enters is not None
    assert best((stepping(3, -at_the_limit + 0.007, -0.2),), policy) is None
    assert stays is None
    assert leaves is not None


def test_latency_falls_back_where_plain_decoding_is_within_the_loss() -> None:
    """Its steps are the shortest of all."""
    policy = a_policy(throughput_loss=0.10, minimum_gain=0.0)

    assert best((stepping(0, -0.05, -0.5), LONG), policy) == stepping(0, -0.05, -0.5)


def test_latency_takes_up_nothing_that_brings_less_than_the_minimum_gain() -> None:
    """K=0 in force: 3% more goodput is more than 1% of loss, but below the user's minimum."""
    policy = a_policy(throughput_loss=0.01, minimum_gain=0.05)
    bring = Option(2, 0.03 - math.log(1.05), 0.03, 0.4, 0.005, measured=True, doubted=False)

    assert best((bring,), policy) is None


def test_for_latency_a_longer_length_has_to_leave_the_loss_behind() -> None:
    """And a shorter one only has to be within it; without a loss both have to bring more."""
    goodputs, steps = (0.0, 0.10, 0.12), (-0.3, 0.0, 0.4)

    plain = contended(goodputs, steps, 1, a_policy())
    moved = contended(goodputs, steps, 1, a_policy(throughput_loss=0.05))

    loss = -math.log(0.95)
    assert plain == list(goodputs)
    assert moved[1] == 0.10
    assert moved[2] - moved[1] == pytest.approx(0.02 - loss)
    assert moved[0] - moved[1] == pytest.approx(0.0 - (0.12 - loss))
