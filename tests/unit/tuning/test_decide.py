"""Decision sequences: what the tuner does window by window, without noise."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.schedule import length_at
from tests.support.windows import (
    DEAD,
    GOOD,
    STEP_MS,
    Traffic,
    a_policy,
    course,
    first,
    lengths,
    looking,
)

DEAR = {0: 9.6, 1: 40.0, 2: 44.0, 3: 48.0, 4: 52.0}
"""Switching speculation on costs so much that no K pays, however sound the draft."""


# What is played before anything is known.


def test_a_new_revision_starts_at_its_initial_length_and_tries_nothing() -> None:
    """Not at 1: the price of switching speculation on can hide what a longer proposal brings. What
    to try first depends on what it brings."""
    decision = first(a_policy(initial=3))

    assert decision.table == ((1, 64, 3),)
    assert looking(decision) == ()


def test_without_evidence_nothing_changes() -> None:
    """However often it is asked."""
    policy = a_policy()
    decision = first(policy)
    for now in range(100):
        again = decide(None, decision.state, policy, Occasion(float(now)))
        assert again == decision


def test_without_trials_speculation_is_not_switched_off() -> None:
    """What K=0 costs was not seen; acceptance alone never decides."""
    played = course(a_policy(trial_share=0.0), [Traffic()] * 40)

    assert 0 not in lengths(played)
    assert all(not decision.trials for decision in played)


# The best measured goodput.


@pytest.mark.parametrize(
    ("acceptance", "step_ms", "ends_at"),
    [
        ((0.61, 0.38, 0.21, 0.14), STEP_MS, 2),
        (GOOD, STEP_MS, 4),
        ((0.5, 0.1, 0.02, 0.01), STEP_MS, 1),
        (GOOD, DEAR, 0),
        ((0.11, 0.01, 0.0, 0.0), STEP_MS, 0),
    ],
)
def test_it_ends_at_the_highest_goodput(
    acceptance: tuple[float, ...], step_ms: dict[int, float], ends_at: int
) -> None:
    """E(K)/T(K) decides, K=0 is one of the arms."""
    played = course(a_policy(), [Traffic(acceptance, step_ms)] * 12)

    assert lengths(played)[-1] == ends_at


def test_a_change_is_told_with_its_gain() -> None:
    """So that a user can see why."""
    played = course(a_policy(), [Traffic()] * 12)
    changes = [change for decision in played for change in decision.changes]

    assert [change.after for change in changes][-1] == 2
    assert all((change.low, change.high) == (3, 4) for change in changes)
    assert {change.reason for change in changes} == {EventReason.PROPOSAL_LENGTH_CHANGED}
    assert all(change.gain is not None and change.gain > 0 for change in changes)


def test_what_goodput_did_after_a_decision_is_written_next_to_it() -> None:
    """A user sees whether it was right."""
    played = course(a_policy(), [Traffic()] * 5)

    assert played[1].state.changes[0].outcome is None
    outcome = played[4].state.changes[0].outcome
    assert outcome is not None
    assert "+" in outcome


def test_a_gain_within_the_hysteresis_is_no_reason_to_change() -> None:
    """It would go to and fro for nothing."""
    step_ms = {0: 9.6, 1: 18.0, 2: 20.2, 3: 21.65, 4: 23.0}
    played = course(a_policy(low=1), [Traffic(step_ms=step_ms)] * 60)

    assert len(set(lengths(played)[15:])) == 1


def least_gain(share: float) -> dict[int, float]:
    """Step times with which K=1, the best above 0, brings so much more than K=0."""
    price = 10.0 * 1.61 / (1 + share)
    return {0: 10.0} | {k: price * (1 + 0.3 * (k - 1)) for k in (1, 2, 3, 4)}


def test_speculation_must_beat_plain_decoding_by_the_minimum_gain() -> None:
    """K=1 gives 8% more than K=0: not worth it at 15%, worth it at 0."""
    traffic = [Traffic(step_ms=least_gain(0.08))] * 40

    assert lengths(course(a_policy(minimum_gain=0.15), traffic))[-1] == 0
    assert lengths(course(a_policy(minimum_gain=0.0), traffic))[-1] == 1


def test_once_on_speculation_stays_on_a_little_below_the_minimum_gain() -> None:
    """Or a gain of about that size would switch it off and on for ever."""
    traffic = [Traffic(step_ms=least_gain(0.04))] * 40

    assert lengths(course(a_policy(choices=(1,), initial=1), traffic))[-1] == 1
    assert lengths(course(a_policy(choices=(1,), initial=0), traffic))[-1] == 0


def test_each_batch_size_gets_its_own_length() -> None:
    """Verification is nearly free at batch 1 and dear at 32."""
    cheap = {0: 9.6, 1: 10.0, 2: 10.4, 3: 10.8, 4: 11.2}
    policy = a_policy()
    low = course(policy, [Traffic(step_ms=cheap, batch=2)] * 8)
    both = course(policy, [Traffic(step_ms=DEAR, batch=32)] * 80, start=low[-1])

    assert length_at(both[-1].table, 2) == 4
    assert length_at(both[-1].table, 32) == 0


def test_batch_sizes_that_were_never_seen_take_the_nearest_length() -> None:
    """The best guess until they are seen."""
    played = course(a_policy(), [Traffic()] * 6)

    assert played[-1].table == ((1, 64, 2),)


# Looks.


def test_looks_are_rare_while_nothing_changes_and_never_end() -> None:
    """Each costs goodput; without any, a change that K in force does not show is never found."""
    played = course(a_policy(), [Traffic(GOOD)] * 300)
    opened = [n for n in range(1, 300) if played[n].state.looks > played[n - 1].state.looks]

    assert lengths(played)[-1] == 4
    assert played[20].state.looks >= 1
    late = [n for n in opened if n >= 100]
    assert 3 <= len(late) <= 20


def test_at_k_0_it_looks_back_at_speculation() -> None:
    """At K=0 nothing is seen of drafts, so only a look can find out that they pay again."""
    off = course(a_policy(), [Traffic(GOOD, DEAR)] * 30)
    assert lengths(off)[-1] == 0

    back = course(a_policy(), [Traffic(GOOD)] * 40, start=off[-1])
    assert lengths(back)[-1] == 4


def test_a_look_that_the_user_asks_for_begins_at_once() -> None:
    """And each value of the annotation asks once."""
    policy = a_policy()
    settled = course(policy, [Traffic(GOOD)] * 20)[-1]
    assert looking(settled) == ()

    asked = decide(None, settled.state, policy, Occasion(200.0, asked="2026-01-01"))
    assert looking(asked) == (0, 1, 2, 3)
    again = decide(None, asked.state, policy, Occasion(201.0, asked="2026-01-01"))
    assert again.state.looks == asked.state.looks


def test_trials_take_no_more_than_their_share() -> None:
    """The user's traffic pays for them."""
    policy = a_policy(trial_share=0.03)

    for decision in course(policy, [Traffic()] * 60):
        assert all(trial.share <= 0.03 for trial in decision.trials)


# The user's bounds and modes.


def test_equal_bounds_pin_the_length_at_once() -> None:
    """It is the user's command and needs no evidence; nothing else is tried."""
    policy = a_policy()
    tuned = course(policy, [Traffic()] * 6)[-1]

    pinned = decide(None, tuned.state, replace(policy, low=3, high=3), Occasion(40.0))

    assert pinned.table == ((1, 64, 3),)
    assert pinned.trials == ()
    assert pinned.tuned.reason is Reason.PINNED
    assert pinned.changes[0].gain is None


def test_a_minimum_above_zero_forbids_falling_back() -> None:
    """Neither cost nor a dead draft leads below it; the alarm is raised all the same."""
    policy = a_policy(low=2)
    played = course(policy, [Traffic(DEAD, DEAR)] * 30)

    assert min(lengths(played)) == 2
    assert all(0 not in trial.arms for decision in played for trial in decision.trials)
    assert played[-1].healthy.reason is Reason.NO_ACCEPTANCE


def test_bounds_that_move_move_the_length() -> None:
    """At once: they are a command."""
    policy = a_policy()
    tuned = course(policy, [Traffic()] * 6)[-1]

    bounded = decide(None, tuned.state, replace(policy, high=1), Occasion(40.0))

    assert lengths([bounded]) == [1]


def test_recommend_decides_the_same_and_plays_nothing() -> None:
    """The advice is what Auto would do."""
    policy = a_policy(mode=TuningMode.RECOMMEND)
    played = course(policy, [Traffic()] * 30)

    assert set(lengths(played)) == {4}
    advice = [change for decision in played for change in decision.changes]
    assert [(change.after, change.advised) for change in advice] == [(2, True)]
    assert played[-1].tuned.reason is Reason.RECOMMENDATION
    gain = advice[0].gain
    assert gain is not None
    assert f"{gain:+.0%}" in advice[0].message
    assert pytest.approx(0.30, abs=0.01) == (1.99 / 15.0) / (2.34 / 23.0) - 1
    assert played[-1].tuned.message.endswith("K=2 at batch 3-4 (about +30% goodput).")
    assert {notice.reason for decision in played for notice in decision.notices} == {
        EventReason.RECOMMENDED
    }


def test_off_plays_the_fixed_table_and_tries_nothing() -> None:
    """Evidence is still gathered and shown."""
    policy = a_policy(mode=TuningMode.OFF, fixed=((1, 8, 4), (9, 64, 1)))
    played = course(policy, [Traffic()] * 10)

    assert {decision.table for decision in played} == {policy.fixed}
    assert all(not decision.trials for decision in played)
    assert played[-1].state.evidence is not None


def test_auto_after_off_goes_on_with_what_it_knew() -> None:
    """Nothing has to be measured again."""
    policy = a_policy()
    tuned = course(policy, [Traffic()] * 6)[-1]
    off = decide(None, tuned.state, replace(policy, mode=TuningMode.OFF), Occasion(40.0))

    assert decide(None, off.state, policy, Occasion(50.0)).table == tuned.table


def test_method_none_has_nothing_to_tune() -> None:
    """Its goodput is measured all the same."""
    policy = a_policy(method="none", choices=(), initial=0)

    decision = course(policy, [Traffic()] * 5)[-1]

    assert decision.tuned.reason is Reason.NOTHING_TO_TUNE
    assert decision.healthy.reason is Reason.NOT_SPECULATING
    assert decision.table == ((1, 64, 0),)
    assert decision.trials == ()
    assert decision.state.evidence is not None
    assert decision.state.evidence.goodput == pytest.approx(4 / 0.0096)


def test_with_tuning_off_a_dead_draft_is_told_and_a_sound_one_again() -> None:
    """The fixed lengths are the user's; the alarm is not switched off with tuning."""
    policy = a_policy(mode=TuningMode.OFF)
    sick = course(policy, [Traffic(DEAD)] * 5)
    well = course(policy, [Traffic(GOOD)] * 3, start=sick[-1])

    assert sick[-1].healthy.reason is Reason.NO_ACCEPTANCE
    assert well[-1].healthy.status is ConditionStatus.TRUE
    assert {decision.table for decision in sick + well} == {policy.fixed}


# Properties.


def random_traffic(chance: random.Random) -> Traffic:
    """Any acceptance and any step times."""
    p, acceptance = 1.0, []
    for _ in range(4):
        p *= chance.random()
        acceptance.append(p)
    price = chance.uniform(0.9, 3.0)
    step_ms = {0: 10.0} | {k: 10.0 * price * (1 + 0.15 * k) for k in (1, 2, 3, 4)}
    return Traffic(tuple(acceptance), step_ms, batch=chance.choice((1, 4, 16, 64)))


@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_the_length_stays_within_choices_and_bounds(seed: int) -> None:
    """vLLM has prepared nothing else."""
    chance = random.Random(seed)
    low, high = sorted((chance.randint(0, 4), chance.randint(0, 4)))
    policy = a_policy(choices=(1, 2, 4), low=low, high=high)
    traffic = [random_traffic(chance) for _ in range(5) for _ in range(6)]

    for decision in course(policy, traffic, chance=chance):
        assert {k for _, _, k in decision.table} <= set(policy.arms)
        assert {k for trial in decision.trials for k in trial.arms} <= set(policy.arms)
        assert decision.table[0][0] == 1
        assert decision.table[-1][1] == policy.max_num_seqs


@pytest.mark.parametrize("seed", range(5))
def test_equal_evidence_gives_an_equal_decision(seed: int) -> None:
    """Nothing but the arguments counts."""

    def play() -> list[Decision]:
        chance = random.Random(seed)
        return course(a_policy(), [random_traffic(chance)] * 10, chance=chance)

    assert play() == play()


@pytest.mark.parametrize("seed", range(20))
def test_under_steady_noisy_traffic_it_settles(seed: int) -> None:
    """At the best length or within 3% of its goodput, without going to and fro."""
    chance = random.Random(seed)
    traffic = random_traffic(chance)
    policy = a_policy(minimum_gain=0.0)
    played = course(policy, [traffic] * 80, chance=chance)

    def goodput(k: int) -> float:
        assert traffic.step_ms is not None
        return (1 + sum(traffic.acceptance[:k])) / traffic.step_ms[k]

    last = lengths(played, traffic.batch)[-1]
    assert goodput(last) >= 0.97 * max(goodput(k) for k in policy.arms)
    late = lengths(played, traffic.batch)[40:]
    assert sum(a != b for a, b in itertools.pairwise(late)) <= 4


@pytest.mark.parametrize("seed", range(6))
def test_with_the_defaults_switches_are_few_on_traffic_that_does_not_change(seed: int) -> None:
    """Windows of 5 s whose prompts and step times go up and down; after five minutes K changes at
    most twelve times an hour."""
    chance = random.Random(seed)
    a, each = chance.uniform(0.6, 0.9), chance.uniform(0.5, 2.0)
    acceptance = [a**i for i in (1, 2, 3, 4)]
    step_ms = {k: 10.0 + bool(k) + each * k for k in range(5)}
    policy = a_policy()
    decision = first(policy)
    played = []
    for number in range(240):
        prompts = chance.gauss(0.0, 0.1)
        now = Traffic(
            acceptance=[p + prompts * p * (1 - p) for p in acceptance],
            step_ms={k: ms * math.exp(chance.gauss(0.0, 0.03)) for k, ms in step_ms.items()},
        )
        window = now.played(decision, chance)
        decision = decide(window, decision.state, policy, Occasion(5.0 * number))
        played.append(decision)

    late = lengths(played)[60:]
    assert max(late) > 0
    switches = sum(a != b for a, b in itertools.pairwise(late))
    assert switches <= 12 * len(late) * 5 / 3600
