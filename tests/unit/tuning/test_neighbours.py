"""What a batch bucket takes over from others: how sure, how often, and what not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from speculative_operator.tuning.absorb import absorbed
from speculative_operator.tuning.cost import Cost, StepTime
from speculative_operator.tuning.neighbours import APART, informed, inherited
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.state import State
from tests.support.windows import STEP_MS, Traffic, a_policy, course

NEW = Cost.start((1, 2, 3, 4), SEQUENTIAL)


def timed(cost: Cost, *windows: dict[int, float], error: float = 0.02) -> Cost:
    """With windows of these step times."""
    for ms in windows:
        times = [StepTime(k, math.log(value * 1000), error**2) for k, value in ms.items()]
        cost = absorbed(cost, {4: times}, SEQUENTIAL)
    return cost


def test_a_new_bucket_starts_from_what_another_one_knows_less_surely() -> None:
    """A good guess saves looks; it proves nothing."""
    there = timed(NEW, *[STEP_MS] * 3)

    here = inherited(there, SEQUENTIAL)

    for k in (0, 1, 2, 3):
        assert here.between(k, 4).mean == pytest.approx(there.between(k, 4).mean)
        assert here.between(k, 4).variance > there.between(k, 4).variance
    least = there.between(0, 4).variance + APART["price_error"] ** 2
    assert here.between(0, 4).variance > least
    assert here.measured(4, 0)


def test_what_one_finds_out_another_one_need_not() -> None:
    """Also where it has compared two K of its own before."""
    here = timed(NEW, {4: 23.0, 0: 9.6}, {4: 23.0, 0: 9.6})
    there = timed(NEW, *[{4: 23.0, 1: 15.0, 0: 9.6}] * 3)

    told = informed(here, [there], now=4, prior=SEQUENTIAL)

    off = abs(here.between(4, 1).mean - there.between(4, 1).mean)
    assert abs(told.between(4, 1).mean - there.between(4, 1).mean) < 0.6 * off
    assert told.between(4, 1).variance < 0.5 * here.between(4, 1).variance


def test_what_is_known_of_its_own_is_left_alone() -> None:
    """Its own times are of its own batch sizes."""
    here = timed(NEW, *[STEP_MS] * 3)
    there = timed(NEW, *[{k: ms * (1 + 0.1 * k) for k, ms in STEP_MS.items()}] * 3)

    assert informed(here, [there], now=4, prior=SEQUENTIAL) == here


def test_being_told_again_teaches_nothing() -> None:
    """Or it would believe in the end that all batch sizes are the same."""
    there = timed(NEW, *[STEP_MS] * 20)
    once = informed(NEW, [there], now=4, prior=SEQUENTIAL)

    assert informed(once, [there], now=4, prior=SEQUENTIAL) == once
    assert informed(once, [there, there], now=4, prior=SEQUENTIAL) == once


def test_nobody_who_knows_is_no_news() -> None:
    """The first bucket has the prior."""
    assert informed(NEW, [], now=4, prior=SEQUENTIAL) == NEW


def test_the_surest_one_is_asked() -> None:
    """Buckets are compared by what they know, ratio by ratio."""
    vague = timed(NEW, {4: 20.0, 1: 19.0}, error=0.2)
    sure = timed(NEW, *[{4: 23.0, 1: 13.0}] * 5)

    told = informed(NEW, [vague, sure], now=4, prior=SEQUENTIAL)

    assert told == informed(NEW, [sure], now=4, prior=SEQUENTIAL)
    assert told.between(4, 1).mean > NEW.between(4, 1).mean


def learned_by(after_change: bool) -> State:
    """Batch 4 with slower drafts since a while, and batch 16 that was seen before that only."""
    slower = {k: ms * (1 + 0.5 * bool(k)) for k, ms in STEP_MS.items()}
    policy = a_policy()
    before = course(policy, [Traffic(batch=16, steps=100)] * 10 + [Traffic()] * 10)
    traffic = [Traffic(step_ms=slower)] * 12
    if after_change:
        traffic += [Traffic(step_ms=slower, batch=16, steps=100)] * 2
    return course(policy, traffic, start=before[-1])[-1].state


def test_after_a_change_older_knowledge_of_others_is_not_asked() -> None:
    """What has changed here has changed there too, most likely."""
    state = learned_by(after_change=False)

    assert state.buckets[4].cost.former is not None
    told = state.buckets[4].cost.of(4).mean
    assert math.exp(told) == pytest.approx(1.5 * STEP_MS[4] / STEP_MS[0], rel=0.15)


def test_a_new_bucket_has_the_noise_of_the_machine() -> None:
    """It is the same machine."""
    policy = a_policy()
    state = course(policy, [Traffic()] * 10)[-1].state
    noisy = replace(state.buckets[4].cost, noise=5.0, drift=0.05)
    state = replace(state, buckets={4: replace(state.buckets[4], cost=noisy)})
    decision = replace(course(policy, [Traffic()])[-1], state=state)

    after = course(policy, [Traffic(batch=16, steps=100)], start=decision)[-1].state

    assert after.buckets[16].cost.noise == pytest.approx(5.0, rel=0.5)
