"""Engines restarted without speculation, and back: when it pays, and never for nothing."""

from __future__ import annotations

import itertools
import math

import pytest
from pydantic import TypeAdapter

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.balance import balance
from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion, Running
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Variant, assumed_tax
from speculative_operator.tuning.verdict import Change, Notice
from tests.support.variants import (
    ONE,
    PAIR,
    SENSING,
    STARTUP,
    TAX,
    Play,
    costing,
)
from tests.support.windows import GOOD, Traffic, a_policy

SPECULATIVE, AUTOREGRESSIVE = Variant.SPECULATIVE, Variant.AUTOREGRESSIVE

DEAR = Traffic(step_ms=costing(1.6))
"""The best K brings .79 of K=0's goodput, and .70 of that of engines without speculation."""

PAYING = Traffic(acceptance=GOOD)
"""K=4 brings twice as much."""

LEVEL_ONLY = RestartLimits(replicas=2)
"""The default: no restart of the operator's own accord."""

DAY = 1440
"""Windows of the benchmark in the facts."""


def moves(decision: Decision) -> list[Change]:
    """The changes of variant on record, newest first."""
    about = (EventReason.FELL_BACK_BY_RESTART, EventReason.SPECULATION_RESUMED)
    return [c for c in decision.state.changes if c.reason in about and "engines" in c.message]


def a_play(limits: RestartLimits = PAIR, mode: TuningMode = TuningMode.AUTO, seed: int = 1) -> Play:
    """Windows with noise under a policy."""
    return Play(a_policy(restart=limits, mode=mode), seed=seed)


def without(limits: RestartLimits = PAIR) -> Play:
    """A model that has just fallen back by a restart."""
    play = a_play(limits)
    while not play.moves:
        play.play([DEAR])
    play.play([DEAR] * 100)
    return play


# There.


@pytest.mark.parametrize("seed", range(3))
def test_it_never_restarts_where_speculation_pays(seed: int) -> None:
    """Not in hundreds of windows of noise."""
    play = a_play(seed=seed)
    play.play([PAYING] * 600)

    assert play.moves == []
    assert play.decision.state.restart.owed < 0


@pytest.mark.parametrize("limits", [ONE, PAIR])
def test_where_speculation_never_pays_it_restarts_once_and_that_pays(limits: RestartLimits) -> None:
    """Best speed-up .70: by live fallback alone the tax is paid for ever."""
    play, live = a_play(limits), a_play(LEVEL_ONLY)
    play.play([DEAR] * DAY)
    live.play([DEAR] * DAY)

    print(f"\nlost against autoregressive: {play.loss:.1%}, by K=0 live alone {live.loss:.1%}")
    assert play.moves == [AUTOREGRESSIVE]
    assert play.loss < 0.065
    assert live.loss > 0.11


def test_the_decision_carries_its_numbers_and_then_its_outcome() -> None:
    """What was gained afterwards is told next to what was expected."""
    (change,) = moves(without().decision)

    assert change.reason is EventReason.FELL_BACK_BY_RESTART
    assert "start-up 90 s" in change.message
    assert change.outcome is not None
    assert "+1" in change.outcome


def test_without_leave_nothing_restarts_and_it_is_said_once() -> None:
    """The default is live only; advice is not nagging."""
    play = a_play(LEVEL_ONLY)
    told: list[Notice] = []
    for _ in range(DAY // 2):
        told += play.play([DEAR]).notices

    assert play.moves == []
    assert [n.reason for n in told].count(EventReason.RESTART_WOULD_PAY) == 1


def test_one_replica_without_a_surge_is_only_restarted_where_downtime_is_allowed() -> None:
    """Nothing would serve meanwhile."""
    forbidden = a_play(RestartLimits(wanted=True))
    surging = a_play(RestartLimits(wanted=True, surge=True))
    forbidden.play([DEAR] * 500)
    surging.play([DEAR] * 500)

    assert forbidden.moves == []
    assert surging.moves == [AUTOREGRESSIVE]


def test_recommend_only_says_so() -> None:
    """As with everything else."""
    play = a_play(mode=TuningMode.RECOMMEND)
    told: list[Notice] = []
    for _ in range(DAY // 2):
        told += play.play([DEAR]).notices

    assert play.moves == []
    (advice,) = [n for n in told if n.reason is EventReason.RESTART_WOULD_PAY]
    assert "mode Auto" in advice.message


def test_without_a_measured_start_up_nothing_is_weighed() -> None:
    """No evidence is never zero: an unknown start is not a free one."""
    policy = a_policy(restart=PAIR)
    window = Traffic().window({0: 300, 4: 40})
    state = decide(window, State(), policy, Occasion(0.0)).state

    assert state.restart.owed == 0.0
    assert state.restart.startup is None


# No move by a cycle of load.

BUSY, QUIET = (
    Traffic(acceptance=GOOD, step_ms=costing(2.6), batch=32),
    Traffic(acceptance=GOOD, batch=2),
)


@pytest.mark.parametrize("phase", [20, 60, 120])
def test_a_cycle_of_load_moves_nothing(phase: int) -> None:
    """Busy hours in which a restart would pay, and quiet ones that would want it undone."""
    play = a_play()
    play.play(([BUSY] * phase + [QUIET] * phase) * (960 // (2 * phase)))

    assert play.moves == []


@pytest.mark.parametrize("phases", [(240, 240), (400, 400), (1600, 400)])
def test_a_cycle_that_once_led_there_and_back_does_not_again(phases: tuple[int, int]) -> None:
    """Phases so long that one restart pays in each: from the second turn on, cycles are weighed as
    a whole."""
    busy, quiet = phases
    play = a_play()
    play.play(([BUSY] * busy + [QUIET] * quiet) * 4)

    assert play.moves in ([], [AUTOREGRESSIVE, SPECULATIVE])


# And back.


def test_it_comes_back_for_a_load_at_which_speculation_is_remembered_to_pay() -> None:
    """No look is needed: both loads were seen before."""
    play = a_play()
    play.play([QUIET] * 60)
    play.play([BUSY] * 900)
    assert play.moves == [AUTOREGRESSIVE]

    play.play([QUIET] * 300)

    assert play.moves == [AUTOREGRESSIVE, SPECULATIVE]
    assert "goodput +" in moves(play.decision)[0].message


def test_a_sensor_brings_it_back_soon_after_speculation_pays_again() -> None:
    """It measures both under the same traffic, all the time."""
    play = without(SENSING)
    assert play.decision.sensor

    play.play([PAYING] * 200)

    assert play.moves == [AUTOREGRESSIVE, SPECULATIVE]


def test_a_look_that_is_asked_for_brings_it_back_within_it() -> None:
    """On the sensor, with no sum that has to build up first."""
    play = without(SENSING)
    play.asked = "now"
    play.play([PAYING] * 14)

    assert play.moves == [AUTOREGRESSIVE, SPECULATIVE]


@pytest.mark.parametrize("limits", [ONE, PAIR])
def test_without_a_sensor_a_look_that_backs_off_brings_it_back(limits: RestartLimits) -> None:
    """A draft was mended: nothing that runs can tell."""
    play = without(limits)
    while play.runs is AUTOREGRESSIVE:
        play.idle(300.0)
        play.play([PAYING])
    play.play([PAYING] * 60)

    assert play.runs is SPECULATIVE
    assert not play.decision.state.restart.looking
    assert play.now < 86400 / 2


@pytest.mark.parametrize("limits", [ONE, PAIR])
def test_looks_that_find_nothing_come_ever_later(limits: RestartLimits) -> None:
    """Each costs a start; all of them together a small share."""
    play = without(limits)
    looked = [play.now]
    for _ in range(5):
        while not play.decision.state.restart.looking:
            play.idle(600.0)
            play.play([DEAR])
        looked.append(play.now)
        while play.decision.state.restart.looking or play.runs is SPECULATIVE:
            play.play([DEAR])
        play.play([DEAR] * 30)

    waits = [b - a for a, b in itertools.pairwise(looked)]
    assert all(b > 1.6 * a for a, b in itertools.pairwise(waits))
    assert waits[-1] > 86400 / 2


def test_a_user_who_asks_for_a_look_gets_one_at_once() -> None:
    """The same annotation as for trials."""
    play = without()
    running = Running(speculative=0, autoregressive=2, startup=STARTUP)

    decision = decide(
        None, play.decision.state, play.policy, Occasion(play.now, asked="now", running=running)
    )

    assert decision.variant is AUTOREGRESSIVE
    assert decision.sensor


@pytest.mark.parametrize(
    "changed",
    [
        {"restart": LEVEL_ONLY},
        {"low": 1},
        {"mode": TuningMode.OFF},
    ],
)
def test_withdrawn_leave_is_obeyed_at_once(changed: dict[str, object]) -> None:
    """The user's word needs no evidence, and costs no patience."""
    play = without()
    policy = a_policy(**{"restart": PAIR, **changed})
    running = Running(speculative=0, autoregressive=2, startup=STARTUP)

    decision = decide(None, play.decision.state, policy, Occasion(play.now, running=running))

    assert decision.variant is SPECULATIVE
    assert decision.state.restart.patience == 0


# What is known.


def test_the_tax_is_assumed_between_the_two_measured_points() -> None:
    """6.6% at one request, 21.6% at 189."""
    assert assumed_tax(1) == pytest.approx(0.0639, abs=1e-4)
    assert assumed_tax(189) == assumed_tax(1024) == pytest.approx(0.1956, abs=1e-4)
    assert assumed_tax(1) < assumed_tax(16) < assumed_tax(189)


def test_the_tax_is_measured_once_engines_ran_without_speculation() -> None:
    """Not the figure of another model for ever."""
    play = without(SENSING)

    measured = play.decision.state.restart.cost(4, play.policy.prior)
    assert measured.mean == pytest.approx(_log1p(TAX), abs=0.02)
    assert abs(assumed_tax(4) - _log1p(TAX)) > 0.02


def test_a_load_never_seen_with_speculation_counts_for_nothing() -> None:
    """Neither owed nor owing."""
    play = without()
    found = balance(Traffic(batch=64).window({0: 400}), play.decision.state, play.policy)

    assert (found.known, found.without, found.speculating) == (0.0, 0.0, 0.0)
    assert not found.telling


def test_status_tells_of_the_engines_that_run() -> None:
    """No acceptance where nothing is drafted: absent, not 0."""
    decision = without().decision
    evidence = decision.state.evidence
    assert evidence is not None

    assert (evidence.acceptance, evidence.speedup) == (None, None)
    assert evidence.goodput is not None
    assert (decision.healthy.status, decision.healthy.reason) == (
        ConditionStatus.UNKNOWN,
        Reason.AUTOREGRESSIVE,
    )
    assert (decision.tuned.status, decision.tuned.reason) == (
        ConditionStatus.TRUE,
        Reason.AUTOREGRESSIVE,
    )


def test_a_sensor_keeps_acceptance_and_health_in_sight() -> None:
    """It speculates under the same traffic."""
    decision = without(SENSING).decision
    assert decision.state.evidence is not None

    assert decision.healthy.reason in (Reason.HEALTHY, Reason.PAUSED)
    assert decision.tuned.reason is Reason.AUTOREGRESSIVE


def test_a_restarted_operator_goes_on_where_it_stopped() -> None:
    """All of it is in the state, as JSON: the sum, the times, what the starts took."""
    kept, restarted = a_play(), a_play()
    states = TypeAdapter(State)
    for number in range(400):
        kept.play([DEAR])
        restarted.play([DEAR])
        if number % 4 == 0:
            body = states.dump_json(restarted.decision.state)
            restarted.restart_operator(states.validate_json(body))

    assert restarted.moves == kept.moves == [AUTOREGRESSIVE]
    assert abs(restarted.loss - kept.loss) < 0.01


def _log1p(tax: float) -> float:
    return math.log1p(tax)
