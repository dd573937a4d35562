"""c(K) = T_step(K)/T_step(0) from step times under the same traffic."""

from __future__ import annotations

import math
import random

import pytest

from speculative_operator.tuning.cost import Cost, StepTime, step_time
from speculative_operator.tuning.page import Counts
from tests.support.windows import STEP_MS, Traffic

LENGTHS = (1, 2, 3, 4)


def a_cost() -> Cost:
    return Cost.prior(LENGTHS, block=False)


def times(ms: dict[int, float], error: float = 0.02) -> list[StepTime]:
    """Exact step times with a stated error; K=4 is in force and so the surest."""
    return [
        StepTime(k, math.log(value * 1000), error**2 / (4 if k == 4 else 1))
        for k, value in ms.items()
    ]


def ratio(cost: Cost, k: int, other: int = 0) -> float:
    return math.exp(cost.between(k, other).mean)


def test_what_was_timed_is_believed() -> None:
    """The first window has nothing to contradict."""
    cost = a_cost().after(times(STEP_MS))

    for k in LENGTHS:
        assert ratio(cost, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.03)
        assert cost.measured(k, 0)


def test_before_any_time_no_length_counts_as_measured() -> None:
    """Assumed costs must not decide."""
    assert not any(a_cost().measured(k, 0) for k in LENGTHS)


def test_a_length_between_two_timed_ones_is_still_not_measured() -> None:
    """The line of the prior tells of it, but only its own time may decide."""
    cost = a_cost().after(times({0: 9.6, 1: 12.5, 2: 15.0, 4: 23.0}))

    assert not cost.measured(3, 0)
    assert ratio(cost, 3) == pytest.approx(19.0 / 9.6, rel=0.1)


def test_a_length_that_was_played_alone_teaches_nothing() -> None:
    """Its time may be the machine's; only a difference under the same traffic is a cost."""
    cost = a_cost()

    assert cost.after(times({4: 100.0})) == cost


def test_a_drift_of_the_machine_teaches_nothing() -> None:
    """All K become 40% slower together, as seen on a loaded machine."""
    cost = a_cost().after(times(STEP_MS))

    slower = cost.after(times({k: 1.4 * ms for k, ms in STEP_MS.items()}))

    for k in LENGTHS:
        assert ratio(slower, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.02)


def test_two_speculative_lengths_tell_nothing_of_plain_decoding() -> None:
    """Switching speculation on has a price of its own."""
    cost = a_cost().after(times({2: 15.0, 4: 23.0}))

    assert ratio(cost, 4, 2) == pytest.approx(23.0 / 15.0, rel=0.02)
    assert not cost.measured(4, 0)


def test_one_time_that_contradicts_is_held_out() -> None:
    """An outlier on the only look at K=0 would otherwise decide for long."""
    cost = a_cost().after(times(STEP_MS))

    after = cost.after(times({**STEP_MS, 0: 96.0}))

    assert ratio(after, 4) == pytest.approx(ratio(cost, 4), rel=0.02)
    assert after.held == {0: 1}


def test_the_second_one_in_the_same_direction_is_believed() -> None:
    """Twice is no outlier: the engine has changed."""
    changed = times({**STEP_MS, 3: 60.0})
    cost = a_cost().after(times(STEP_MS)).after(changed).after(changed)

    assert ratio(cost, 3) == pytest.approx(60.0 / 9.6, rel=0.1)
    assert cost.held == {}


def test_a_contradiction_that_does_not_come_again_is_forgotten() -> None:
    """It was an outlier."""
    cost = a_cost().after(times(STEP_MS)).after(times({**STEP_MS, 3: 60.0}))

    assert cost.after(times(STEP_MS)).held == {}


def test_windows_without_evidence_make_it_less_sure() -> None:
    """So that an old look becomes worth repeating."""
    cost = a_cost().after(times(STEP_MS))

    assert cost.widened(30).of(4).variance > cost.of(4).variance
    assert cost.widened(30).means == cost.means


def test_a_neighbouring_bucket_starts_from_it_but_is_not_measured() -> None:
    """A good guess saves looks; it proves nothing."""
    cost = a_cost().after(times(STEP_MS)).inherited()

    assert ratio(cost, 4) == pytest.approx(23.0 / 9.6, rel=0.03)
    assert not cost.measured(4, 0)


def test_many_noisy_windows_come_to_the_true_cost() -> None:
    """A level that changes with the load must cancel out."""
    chance = random.Random(1)
    cost = a_cost()
    for _ in range(40):
        level = chance.uniform(0.7, 1.5)
        noisy = {k: ms * level * math.exp(chance.gauss(0, 0.05)) for k, ms in STEP_MS.items()}
        cost = cost.widened(1).after(times(noisy, error=0.05))

    for k in LENGTHS:
        assert ratio(cost, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.05)
        assert math.sqrt(cost.of(k).variance) < 0.03


def test_a_step_time_is_the_geometric_mean() -> None:
    """Costs are quotients, so their logarithms are what is averaged."""
    time = step_time(2, Traffic().row(2, 100))

    assert time is not None
    assert math.exp(time.mean) == pytest.approx(15_000)
    assert 0.01 < math.sqrt(time.variance) < 0.03


def test_too_few_steps_are_no_time() -> None:
    """One slow step would decide."""
    assert step_time(2, Traffic().row(2, 2)) is None
    assert step_time(2, Counts()) is None
