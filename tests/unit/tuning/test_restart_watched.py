"""Engines whose K cannot change live: what they bring is held against engines without speculation,
which only a restart can show."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from speculative_operator.api.conditions import EventReason, Reason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.decide import Decision
from speculative_operator.tuning.outlook import outlook
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.variant import Variant
from speculative_operator.tuning.verdict import Notice
from tests.support.variants import PAIR, RESTART_WINDOWS, Play, costing
from tests.support.windows import DEAD, GOOD, STEP_MS, Traffic, a_policy

SPECULATIVE, AUTOREGRESSIVE = Variant.SPECULATIVE, Variant.AUTOREGRESSIVE

LOST = Traffic(acceptance=DEAD)
"""Nothing is accepted."""

CLOSE = Traffic(acceptance=GOOD, step_ms=costing(2.1))
"""K=4 is slower by a tenth than no speculation, although nearly all of its drafts are accepted."""

PAYING = Traffic(acceptance=GOOD)
"""K=4 brings about twice as much."""

HOURS = 720
"""Windows of one."""


def a_play(limits: RestartLimits = PAIR, mode: TuningMode = TuningMode.AUTO, seed: int = 1) -> Play:
    """Engines that play K=4 and nothing else."""
    return Play(a_policy(restart=limits, mode=mode, live=False), seed=seed)


def speculating(play: Play, *traffic: Traffic) -> float:
    """Tokens that K=4 would have brought all the time, which was shared by this traffic."""
    rates = (
        1000 * each.batch * (1 + sum(each.acceptance)) / (each.step_ms or STEP_MS)[4]
        for each in traffic
    )
    return play.now * statistics.mean(rates)


def told(decision: Decision) -> str:
    """Of the last change of variant."""
    return next(c.message for c in decision.state.changes if "engines" in c.message)


@pytest.mark.parametrize("seed", range(3))
def test_where_speculation_never_pays_it_is_left_for_good(seed: int) -> None:
    """No look is needed where the drafter's kind and acceptance alone say so."""
    play = a_play(seed=seed)
    play.play([LOST] * 4 * HOURS)

    assert play.moves == [AUTOREGRESSIVE]
    assert play.loss < 0.04
    assert "a look" not in told(play.decision)


@pytest.mark.parametrize("seed", range(3))
def test_what_the_drafter_s_kind_says_is_put_to_the_test_and_stays_where_it_was_wrong(
    seed: int,
) -> None:
    """By what is usual, speculation pays here; only engines without it show that it does not."""
    play = a_play(seed=seed)
    play.play([CLOSE] * 3 * HOURS)

    assert play.moves == [AUTOREGRESSIVE]
    assert "a look at engines without speculation" in told(play.decision)
    assert not play.decision.state.restart.trying


@pytest.mark.parametrize("seed", range(3))
def test_where_speculation_pays_engines_without_it_are_looked_at_once(seed: int) -> None:
    """What was measured stays measured: no second look in so many hours."""
    play = a_play(seed=seed)
    play.play([PAYING] * 8 * HOURS)

    assert play.moves == [AUTOREGRESSIVE, SPECULATIVE]
    assert play.tokens > 0.97 * speculating(play, PAYING)
    assert "is over: goodput -" in told(play.decision)


def test_looks_at_engines_without_speculation_take_a_bounded_share_of_the_time() -> None:
    """Conditions change all the time between those in which the one pays and the other."""
    play = a_play()
    for _ in range(12):
        play.play([PAYING] * (HOURS // 2))
        play.play([CLOSE] * (HOURS // 2))

    assert len(play.moves) <= 8
    assert play.tokens > 0.9 * max(speculating(play, PAYING, CLOSE), play.without)


def test_a_look_that_the_user_asks_for_is_taken_at_once() -> None:
    """The annotation asks for the only look that there can be."""
    play = a_play()
    play.play([PAYING] * 20)
    play.asked = "now"
    play.play([PAYING])

    assert play.moves == [AUTOREGRESSIVE]
    assert play.decision.tuned.reason is Reason.MEASURING


def test_a_look_survives_a_restart_of_the_operator() -> None:
    """What is under way stands in the state, and so does that K cannot change live."""
    play = a_play()
    play.play([PAYING])
    play.asked = "now"
    play.play([PAYING] * (RESTART_WINDOWS + 6))
    play.restart_operator(play.decision.state)
    play.play([PAYING] * (2 * RESTART_WINDOWS))

    assert play.moves == [AUTOREGRESSIVE, SPECULATIVE]
    assert play.decision.state.restart.reference == 4


@pytest.mark.parametrize(
    ("limits", "mode"),
    [
        (RestartLimits(replicas=2), TuningMode.AUTO),
        (RestartLimits(wanted=True), TuningMode.AUTO),
        (PAIR, TuningMode.RECOMMEND),
    ],
)
def test_without_leave_nothing_moves_and_it_is_told_that_it_would_pay(
    limits: RestartLimits, mode: TuningMode
) -> None:
    """Level Live, one replica without a surge, and mode Recommend."""
    play = a_play(limits, mode)
    said: list[Notice] = []
    for _ in range(HOURS):
        said += play.play([LOST]).notices

    assert play.moves == []
    (advice,) = [n for n in said if n.reason is EventReason.RESTART_WOULD_PAY]
    assert "assumed of this kind of drafter" in advice.message


def test_a_look_that_is_asked_for_without_leave_is_refused() -> None:
    """It would need a restart."""
    play = a_play(RestartLimits(replicas=2))
    play.play([PAYING] * 3)
    play.asked = "now"
    notices = play.play([PAYING]).notices
    again = play.play([PAYING]).notices

    assert [n.reason for n in notices] == [EventReason.LOOK_REFUSED]
    assert "K cannot be changed live" in notices[0].message
    assert again == ()


def test_an_expectation_that_nobody_has_measured_is_told_as_such() -> None:
    """And with the measurement that word is gone."""
    play = a_play()
    play.play([PAYING] * 10)
    before = outlook(play.decision.state, play.policy)
    play.asked = "now"
    play.play([PAYING] * (3 * RESTART_WINDOWS + 30))
    after = outlook(play.decision.state, play.policy)

    assert before is not None
    assert after is not None
    assert "assumed of this kind of drafter" in before.message
    assert "assumed" not in after.message
    expected = STEP_MS[4] / (STEP_MS[0] / 1.137) / (1 + sum(GOOD)) - 1
    assert after.gain == pytest.approx(expected, abs=0.05)


def test_what_is_known_of_one_batch_size_tells_of_others() -> None:
    """Slower engines have more requests at a time, so both are seldom seen at the same ones."""
    play = a_play()
    play.play([replace(PAYING, batch=8)] * 20)
    play.asked = "now"
    play.play([replace(PAYING, batch=12)] * (RESTART_WINDOWS + 20))
    cost = play.decision.state.restart.cost(8, play.policy.prior)

    assert cost.variance < 0.02


def test_an_engine_that_becomes_tunable_forgets_what_was_measured_at_another_k() -> None:
    """Steps at K=4 are no steps at K=0."""
    play = a_play()
    play.play([PAYING] * 20)
    assert play.decision.state.restart.live
    play.policy = a_policy(restart=PAIR)
    play.play([PAYING] * 2)

    restart = play.decision.state.restart
    assert restart.reference == 0
    assert len(restart.live) <= 1
