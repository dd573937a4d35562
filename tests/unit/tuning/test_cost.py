"""c(K) = T_step(K)/T_step(0) from step times of the same and of different windows."""

from __future__ import annotations

import math
import random

import pytest

from speculative_operator.tuning.absorb import absorbed
from speculative_operator.tuning.cost import Cost, StepTime, step_time
from speculative_operator.tuning.page import Counts
from speculative_operator.tuning.prior import SEQUENTIAL
from tests.support.windows import STEP_MS, Traffic

LENGTHS = (1, 2, 3, 4)


def a_cost() -> Cost:
    return Cost.start(LENGTHS, SEQUENTIAL)


def times(ms: dict[int, float], error: float = 0.02) -> list[StepTime]:
    """Exact step times with a stated error; K=4 is in force and so the surest."""
    return [
        StepTime(k, math.log(value * 1000), error**2 / (4 if k == 4 else 1))
        for k, value in ms.items()
    ]


def after(cost: Cost, *windows: dict[int, float], cell: int = 4, error: float = 0.02) -> Cost:
    """What is known after windows with these step times in one batch cell."""
    for ms in windows:
        cost = absorbed(cost, {cell: times(ms, error)}, SEQUENTIAL)
    return cost


def scaled(factor: float) -> dict[int, float]:
    return {k: factor * ms for k, ms in STEP_MS.items()}


def ratio(cost: Cost, k: int, other: int = 0) -> float:
    return math.exp(cost.between(k, other).mean)


def test_what_was_timed_is_believed() -> None:
    """The first window has nothing to contradict."""
    cost = after(a_cost(), STEP_MS)

    for k in LENGTHS:
        assert ratio(cost, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.08)
        assert cost.measured(k, 0)


def test_before_any_time_the_price_of_speculation_is_not_known() -> None:
    """Assumed costs must not decide between K=0 and the rest."""
    assert not any(a_cost().measured(k, 0) for k in LENGTHS)


def test_a_length_between_two_timed_ones_is_known_by_the_line() -> None:
    """Step time is nearly linear in K: less has to be tried."""
    cost = after(a_cost(), {0: 9.6, 1: 12.5, 2: 15.0, 4: 23.0})

    assert ratio(cost, 3) == pytest.approx(19.0 / 9.6, rel=0.08)
    assert cost.of(3).variance > cost.of(2).variance


def test_a_length_that_was_played_alone_says_nothing_of_the_price() -> None:
    """Its time may be the machine's."""
    cost = after(a_cost(), {4: 100.0})

    assert ratio(cost, 4) == pytest.approx(ratio(a_cost(), 4))
    assert not cost.measured(4, 0)


def test_lengths_played_in_different_windows_are_compared_while_the_machine_is_steady() -> None:
    """Without interleaving nothing else can be compared."""
    steady = after(a_cost(), *[{4: 23.0}] * 10, {0: 9.6}, {4: 23.0})

    assert ratio(steady, 4) == pytest.approx(23.0 / 9.6, rel=0.03)
    assert steady.measured(4, 0)


def test_a_machine_that_drifts_makes_such_comparisons_unsure() -> None:
    """How far a level walks is learned from how it has walked."""
    walk = [{4: 23.0 * 1.04**n} for n in range(12)]
    steady, drifting = after(a_cost(), *[{4: 23.0}] * 12), after(a_cost(), *walk)

    assert drifting.drift > 2 * steady.drift
    assert after(drifting, {0: 9.6}).of(4).variance > after(steady, {0: 9.6}).of(4).variance


def test_noise_is_learned_from_the_surprises() -> None:
    """Step counts alone do not say how unlike windows are."""
    chance = random.Random(1)
    noisy = [{4: 23.0 * math.exp(chance.gauss(0, 0.06))} for _ in range(40)]

    assert after(a_cost(), *noisy).noise > 3 * after(a_cost(), *[{4: 23.0}] * 40).noise


def test_a_drift_of_the_machine_teaches_nothing() -> None:
    """All K become slower together, as seen on a loaded machine."""
    cost = after(a_cost(), STEP_MS)

    slower = after(cost, scaled(1.03), scaled(1.06), scaled(1.09))

    for k in LENGTHS:
        assert ratio(slower, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.05)


def test_two_speculative_lengths_tell_nothing_of_plain_decoding() -> None:
    """Switching speculation on has a price of its own."""
    cost = after(a_cost(), {2: 15.0, 4: 19.5})

    assert ratio(cost, 4, 2) == pytest.approx(19.5 / 15.0, rel=0.03)
    assert not cost.measured(4, 0)


def test_a_time_far_too_long_is_held_out() -> None:
    """An outlier on a look at K=0 would otherwise decide for long."""
    cost = after(a_cost(), STEP_MS)

    held = after(cost, {**STEP_MS, 0: 96.0})

    assert ratio(held, 4) == pytest.approx(ratio(cost, 4), rel=0.06)
    assert held.held == {0}


def test_what_may_be_an_outlier_leaves_doubt() -> None:
    """Of two times that disagree the shorter one is believed: nothing is faster by chance."""
    twice_too_long = after(a_cost(), *[{4: 23.0}] * 3, {4: 23.0, 0: 19.2})

    corrected = after(twice_too_long, {4: 23.0, 0: 9.6})

    assert ratio(corrected, 4) == pytest.approx(23.0 / 9.6, rel=0.1)


def test_the_second_one_is_a_change() -> None:
    """Twice is no outlier: the engine has changed."""
    changed = {**STEP_MS, 3: 60.0}
    cost = after(a_cost(), STEP_MS, changed, changed, changed)

    assert ratio(cost, 3) == pytest.approx(60.0 / 9.6, rel=0.15)
    assert cost.held == frozenset()


def test_a_time_far_too_short_is_a_change_at_once() -> None:
    """The load has fallen: K=0 may no longer be best."""
    cost = after(a_cost(), *[STEP_MS] * 4, {4: 11.0})

    assert cost.age == 0
    assert cost.of(4).variance > 10 * after(a_cost(), *[STEP_MS] * 4).of(4).variance


def test_a_length_that_was_not_timed_for_long_may_have_changed_by_itself() -> None:
    """The K in force shows nothing of it, and the surprise is too small to contradict."""
    noisy = after(a_cost(), *[STEP_MS] * 6, error=0.08)
    look: dict[int | None, list[StepTime]] = {4: times({4: STEP_MS[4], 2: 0.85 * STEP_MS[2]}, 0.08)}

    soon = absorbed(noisy, look, SEQUENTIAL, unseen={2: 1, 4: 1})
    late = absorbed(noisy, look, SEQUENTIAL, unseen={2: 60, 4: 1})

    assert ratio(soon, 2, 4) > 0.95 * STEP_MS[2] / STEP_MS[4]
    assert ratio(late, 2, 4) < 0.88 * STEP_MS[2] / STEP_MS[4]
    assert 2 in late.alone
    assert ratio(late, 1, 4) == pytest.approx(ratio(soon, 1, 4), rel=0.03)


def test_what_comes_back_is_known_again() -> None:
    """Load rises and falls; nothing has to be measured twice."""
    before = after(a_cost(), *[STEP_MS] * 10)
    loaded = {0: 20.0, 1: 60.0, 2: 70.0, 3: 80.0, 4: 90.0}
    during = after(before, *[loaded] * 12)
    assert ratio(during, 4) == pytest.approx(4.5, rel=0.1)

    again = after(during, {0: 9.6})

    assert ratio(again, 4) == pytest.approx(ratio(before, 4), rel=0.05)
    assert again.measured(4, 0)


def test_a_contradiction_that_does_not_come_again_is_forgotten() -> None:
    """It was an outlier."""
    cost = after(a_cost(), STEP_MS, {**STEP_MS, 3: 60.0}, STEP_MS)

    assert cost.held == frozenset()


def test_windows_without_evidence_make_it_less_sure() -> None:
    """So that an old look becomes worth repeating."""
    cost = after(a_cost(), STEP_MS)
    soon, late = (absorbed(cost, {4: times({4: 23.0})}, SEQUENTIAL, n) for n in (1, 30))

    assert late.of(4).variance > soon.of(4).variance


def test_each_cell_of_a_bucket_has_its_own_level() -> None:
    """5 requests take longer than 8 padded ones never do: only quotients are shared."""
    cost = after(after(a_cost(), *[STEP_MS] * 3), *[scaled(1.5)] * 3, cell=3)

    assert cost.known.cells == (4, 3)
    assert cost.age > 0
    for k in LENGTHS:
        assert ratio(cost, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.05)


def test_many_noisy_windows_come_to_the_true_cost() -> None:
    """A level that changes with the load must cancel out."""
    chance = random.Random(1)
    cost, level = a_cost(), 1.0
    for _ in range(60):
        level *= math.exp(chance.gauss(0, 0.05))
        noisy = {k: ms * level * math.exp(chance.gauss(0, 0.05)) for k, ms in STEP_MS.items()}
        cost = after(cost, noisy, error=0.05)

    for k in LENGTHS:
        assert ratio(cost, k) == pytest.approx(STEP_MS[k] / STEP_MS[0], rel=0.05)
        assert math.sqrt(cost.of(k).variance) < 0.04


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


def test_two_times_too_long_are_a_change_with_a_doubt() -> None:
    """Two outliers in a row look the same; the next time tells."""
    slow = {**STEP_MS, 3: 60.0}
    cost = after(a_cost(), STEP_MS, slow, slow)
    assert cost.alone == {3}

    assert after(cost, slow).alone == frozenset()
    assert after(cost, STEP_MS).alone == frozenset()


def test_the_only_time_that_tells_the_price_of_speculation_may_be_an_outlier() -> None:
    """No other time contradicts it, however wrong it is."""
    once = after(a_cost(), *[{4: 23.0}] * 3, {4: 23.0, 0: 9.6})
    assert once.alone == {0}

    assert after(once, {4: 23.0, 0: 9.6}).alone == frozenset()


def test_a_time_that_may_well_be_an_outlier_has_to_be_confirmed() -> None:
    """It is believed by half, and that is enough to put the best K aside."""
    cost = after(a_cost(), *[{4: 23.0, 0: 9.6}] * 3)
    expected = 9.6 * ratio(cost, 1)

    assert after(cost, {4: 23.0, 1: expected}).alone == frozenset()
    assert after(cost, {4: 23.0, 1: 1.45 * expected}).alone == {1}
