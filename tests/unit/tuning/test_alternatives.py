"""Why K is what it is, told of each other K."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from speculative_operator.api.conditions import EventReason
from speculative_operator.api.status import WhyNot
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.alternatives import (
    Alternative,
    alternatives,
    best_gain,
    next_look,
)
from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import Fault, State
from speculative_operator.tuning.tally import Tally, regret
from speculative_operator.tuning.variant import Restart, Variant
from tests.support.windows import DEAD, GOOD, NOISY, STEP_MS, Traffic, a_policy, course, first


def told(state: State, policy: Policy) -> dict[int, Alternative]:
    """The alternatives at the batch size that is seen most, by K."""
    assert state.busiest is not None
    return {other.length: other for other in alternatives(state, policy, state.busiest)}


def settled(policy: Policy, windows: int = 14) -> State:
    """What is known after some windows of traffic at which K=2 is best."""
    return course(policy, [Traffic()] * windows)[-1].state


def true_gain(k: int, now: int) -> float:
    """Change of goodput by another K in the traffic of these tests."""
    goodput = {of: (1 + sum(NOISY[:of])) / STEP_MS[of] for of in STEP_MS}
    return goodput[k] / goodput[now] - 1


def test_every_other_length_is_told_with_its_gain_and_error() -> None:
    """The user sees what the policy sees."""
    found = told(settled(a_policy()), a_policy())

    assert list(found) == [0, 1, 3, 4]
    for k, other in found.items():
        assert other.gain is not None
        assert other.error is not None
        assert other.gain == pytest.approx(true_gain(k, 2), abs=2 * other.error + 0.01)
        assert other.error < 0.1


def test_what_was_measured_slower_says_by_how_much() -> None:
    """The commonest answer of all."""
    found = told(settled(a_policy()), a_policy())

    assert found[4].reason is WhyNot.SLOWER
    assert found[4].message.startswith("measured slower by ")
    assert "±" in found[4].message


def test_each_length_tells_when_it_was_timed_last() -> None:
    """Old evidence is weak evidence."""
    states = [decision.state for decision in course(a_policy(), [Traffic()] * 14)]

    times = {k: other.measured_at for k, other in told(states[-1], a_policy()).items()}

    assert times == {k: 5.0 * states[-1].buckets[4].timed[k].window for k in times}
    assert len(set(times.values())) > 1


def test_what_was_not_timed_well_is_pending_or_not_allowed_to_be_tried() -> None:
    """A guess is not told as a measurement."""
    pending, forbidden = a_policy(), a_policy(trial_share=0.0)
    state = course(forbidden, [Traffic()] * 3)[-1].state

    assert told(state, pending)[0].reason is WhyNot.NOT_MEASURED
    assert "trials pending" in told(state, pending)[0].message
    assert "trialSharePercent is 0" in told(state, forbidden)[0].message
    timed = {k for bucket in state.buckets.values() for k in bucket.timed}
    guesses = {o.reason for k, o in told(state, forbidden).items() if k not in timed}
    assert guesses == {WhyNot.NOT_MEASURED}


def test_before_any_draft_nothing_is_expected() -> None:
    """Absent is not zero."""
    policy = a_policy(initial=0, trial_share=0.0)
    state = course(policy, [Traffic()] * 2)[-1].state

    assert {other.gain for other in told(state, policy).values()} == {None}


def test_what_the_bounds_forbid_says_so_and_what_it_would_bring() -> None:
    """The price of one's own bounds."""
    policy = a_policy(high=1)
    found = told(
        course(policy, [Traffic()] * 4, first(policy, settled(a_policy())))[-1].state, policy
    )

    assert found[2].reason is WhyNot.OUT_OF_BOUNDS
    assert found[2].gain is not None
    assert found[0].reason is not WhyNot.OUT_OF_BOUNDS


def test_a_better_length_of_a_batch_size_without_traffic_waits_for_it() -> None:
    """What acceptance at other batch sizes says of it is not acted upon; the next best is told
    apart."""
    state = settled(a_policy())
    bucket = replace(state.buckets[4], length=4)

    found = told(replace(state, buckets={4: bucket}), a_policy())

    assert found[2].reason is WhyNot.WAITS_FOR_TRAFFIC
    assert found[1].reason is WhyNot.ANOTHER_IS_FASTER


def test_for_latency_what_brings_more_has_longer_steps_and_what_is_shorter_loses_too_much() -> None:
    """Else the table would show a faster K and no reason why it is not played."""
    policy = a_policy(throughput_loss=0.1, minimum_gain=0.0)
    state = course(policy, [Traffic(GOOD)] * 70)[-1].state
    assert state.buckets[4].length == 2

    found = told(state, policy)

    assert found[4].reason is WhyNot.LONGER_STEPS
    assert "steps longer by" in found[4].message
    assert found[1].reason is WhyNot.LOSES_TOO_MUCH
    assert "steps shorter by" in found[1].message


def test_mode_recommend_says_what_it_has_advised() -> None:
    """It is not played: that is the user's choice."""
    policy = a_policy(mode=TuningMode.RECOMMEND)

    assert told(settled(policy), policy)[2].reason is WhyNot.RECOMMENDED


def test_mode_off_plays_the_fixed_lengths() -> None:
    """Whatever was measured before."""
    off = a_policy(mode=TuningMode.OFF)

    assert {o.reason for o in told(settled(a_policy()), off).values()} == {WhyNot.FIXED}
    assert "Off" in next_look(settled(a_policy()), off, waits=False).message


def test_below_the_minimum_gain_speculation_stays_off() -> None:
    """It would be faster, but not by as much as the user asks for."""
    policy = a_policy(minimum_gain=0.6)
    state = settled(policy, 20)
    assert state.buckets[4].length == 0

    found = told(state, policy)

    assert found[2].reason is WhyNot.BELOW_MINIMUM_GAIN
    assert found[2].gain == pytest.approx(true_gain(2, 0), abs=0.05)


def test_a_faulty_draft_is_only_tried_for_recovery() -> None:
    """Lengths above 0 are out of the question."""
    policy = a_policy()
    state = course(policy, [Traffic()] * 6 + [Traffic(DEAD)] * 4)[-1].state
    assert isinstance(state.fault, Fault)
    assert state.buckets[4].length == 0

    assert {o.reason for o in told(state, policy).values()} == {WhyNot.FAULTY_DRAFT}


def test_the_best_gain_is_of_what_was_measured_and_may_be_played() -> None:
    """It is what the metric of regret is made of."""
    found = tuple(told(settled(a_policy()), a_policy()).values())
    known = [other.gain for other in found if other.gain is not None]

    assert best_gain(found) == max(known)
    assert best_gain(()) is None


def test_the_next_look_counts_windows_and_estimates_the_time() -> None:
    """Windows of five seconds each."""
    state = settled(a_policy())
    assert state.evidence is not None

    look = next_look(state, a_policy(), waits=False)

    assert look.windows == state.next_look - state.windows > 0
    assert look.at == state.evidence.measured_at + 5.0 * look.windows


def test_without_traffic_the_next_look_has_no_time() -> None:
    """Only windows with evidence count."""
    look = next_look(settled(a_policy()), a_policy(), waits=True)

    assert look.at is None
    assert look.message.endswith("waits for traffic")


def test_a_look_that_goes_on_names_what_is_tried() -> None:
    """A user sees why the engine plays a K that is not the best."""
    asked = decide(None, settled(a_policy()), a_policy(), Occasion(100.0, asked="now"))
    look = next_look(asked.state, a_policy(), waits=True)

    assert look.windows == 0
    assert look.message == "under way: K=0, K=1, K=3, K=4; waits for traffic"


@pytest.mark.parametrize(
    ("policy", "field"),
    [(a_policy(trial_share=0.0), "trialSharePercent"), (a_policy(low=2, high=2), "bounds")],
    ids=["no trials", "pinned"],
)
def test_where_no_look_is_to_come_it_says_why(policy: Policy, field: str) -> None:
    """The field that the user would change."""
    look = next_look(settled(policy), policy, waits=False)

    assert (look.windows, look.at) == (None, None)
    assert field in look.message


def test_a_window_at_the_best_length_regrets_nothing() -> None:
    """There is nothing better that is known."""
    state = settled(a_policy())

    lost = regret(Traffic().window({2: 400}), state, state, a_policy())

    assert (lost.waiting, lost.exploring) == (0.0, 0.0)


def test_regret_is_the_tokens_that_the_best_length_would_have_brought() -> None:
    """Of trials apart from those of the K in force."""
    state = settled(a_policy())
    window = Traffic().window({2: 360, 0: 40})

    lost = regret(window, state, state, a_policy())

    tried = window.total(0).generated
    assert lost.waiting == 0.0
    assert lost.exploring == pytest.approx(tried * true_gain(2, 0), rel=0.15)


def test_a_tally_counts_decisions_by_reason_and_switches_that_were_played() -> None:
    """Advice is a decision and no switch."""
    for mode, switches in ((TuningMode.AUTO, 1), (TuningMode.RECOMMEND, 0)):
        policy = a_policy(mode=mode)
        decisions = [first(policy), *course(policy, [Traffic()] * 6)]
        tally = Tally()
        for before, after in pairwise(decisions):
            tally = tally.after(before.state, after, Traffic().played(before), policy)

        reason = EventReason.RECOMMENDED if not switches else EventReason.PROPOSAL_LENGTH_CHANGED
        assert {each: n for each, n in tally.decisions.items() if n} == {reason: 1}
        assert tally.switches == switches
        assert tally.regret.waiting > 0


def test_a_draft_that_got_better_is_told_at_once() -> None:
    """What is expected follows what is measured."""
    policy = a_policy()
    state = course(policy, [Traffic()] * 8)[-1].state
    acceptance = state.acceptance.after(Traffic(GOOD).window({2: 400}), policy.prior)

    gain = told(replace(state, acceptance=acceptance), policy)[4].gain

    assert gain is not None
    assert gain > 0


def test_engines_without_speculation_have_no_alternatives_to_their_length() -> None:
    """What is known is against K of engines that do not run: it would be told against the goodput
    of those that do."""
    policy = a_policy()
    state = settled(policy)
    away = replace(state, restart=Restart(variant=Variant.AUTOREGRESSIVE))

    assert told(state, policy)
    assert told(away, policy) == {}
