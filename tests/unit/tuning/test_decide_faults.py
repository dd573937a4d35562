"""Decision sequences with faults: dead drafts, silent drafts, counters that lie."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.api.status import WhyNot
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.alternatives import alternatives
from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.page import Phase, Position, Proposed, RowKey
from speculative_operator.tuning.window import Window
from tests.support.windows import DEAD, GOOD, Traffic, a_policy, course, first, lengths, looking

SECONDS = 5.0

NEARLY_FREE = {0: 10.0, 1: 10.05, 2: 10.1, 3: 10.2, 4: 10.4}
"""Step times of the tiny draft on CPU cores, which other work keeps busy."""

HARDLY = Traffic((0.02, 0.0, 0.0, 0.0), step_ms=NEARLY_FREE)
"""A draft that has nothing to do with its target, and is lucky now and then."""


def a_silent_window() -> Window:
    """Decoding at K=4 without drafts."""
    row = Traffic().row(4, 200)
    row = row._replace(drafts=0, draft_tokens=0, accepted=0, generated=row.requests)
    return Window(seconds=SECONDS, rows={RowKey(4, 4, Phase.DECODE): row})


def test_an_unrelated_draft_is_left_within_four_windows() -> None:
    """Acceptance 0: the alarm, and K=0 at once."""
    played = course(a_policy(), [Traffic(DEAD)] * 4)

    assert lengths(played)[-1] == 0
    assert played[-1].healthy.status is ConditionStatus.FALSE
    assert played[-1].healthy.reason is Reason.NO_ACCEPTANCE
    reasons = [notice.reason for decision in played for notice in decision.notices]
    assert EventReason.SPECULATION_FAULTY in reasons
    assert EventReason.FELL_BACK in reasons


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("wanted", [{}, {"throughput_loss": 0.05}, {"minimum_gain": 0.0}])
def test_a_draft_told_to_be_faulty_is_given_up_whatever_the_step_times_say(
    wanted: dict[str, float], seed: int
) -> None:
    """Drafts that cost next to nothing on a noisy machine: times alone would take many windows."""
    noisy = replace(HARDLY, spread=2.0)
    told = course(a_policy(**wanted), [noisy] * 3, chance=random.Random(seed))

    assert lengths(told)[1:] == [0, 0]
    change = next(change for change in told[-1].state.changes if change.after == 0)
    assert change.window <= 2


def test_a_faulty_draft_is_played_again_for_shorter_steps_only_and_says_so() -> None:
    """Steps at K=0 may miss the graphs that others have, and then that is the reason to be told."""
    without_graphs = replace(HARDLY, step_ms={**NEARLY_FREE, 0: 14.0})
    played = course(a_policy(), [without_graphs] * 60)

    back = [
        change for each in played if each.state.fault for change in each.changes if change.after
    ]
    assert back
    for change in back:
        assert "faulty" not in change.message
        assert change.gain is not None


def test_the_decision_says_that_the_draft_is_faulty() -> None:
    """And claims no gain: K=0 was never timed."""
    told = course(a_policy(), [HARDLY] * 2)[-1]

    (change,) = [change for change in told.changes if change.after == 0]

    assert "K 1 -> 0, the draft is faulty: what it proposes only costs" in change.message
    assert change.reason is EventReason.FELL_BACK
    assert change.gain is None
    assert "measured" not in change.message


def test_a_healed_draft_is_found_and_proposes_again() -> None:
    """Nothing is latched, however cheap or dear the faulty one was."""
    sick = course(a_policy(), [HARDLY] * 40)
    assert lengths(sick)[-1] == 0

    healed = replace(HARDLY, acceptance=GOOD)
    again = course(a_policy(), [healed] * 70, start=sick[-1])

    assert lengths(again)[-1] == 4
    assert again[-1].healthy.status is ConditionStatus.TRUE


@pytest.mark.parametrize(("bounds", "length"), [({"low": 2}, 2), ({"low": 3, "high": 3}, 3)])
def test_a_faulty_draft_proposes_what_the_user_demands(bounds: dict[str, int], length: int) -> None:
    """The shortest within the bounds; the alarm is told all the same."""
    played = course(a_policy(**bounds), [HARDLY] * 6)

    assert lengths(played)[1:] == [length] * 5
    assert played[-1].healthy.status is ConditionStatus.FALSE


def test_a_faulty_draft_is_given_up_at_every_batch_size() -> None:
    """The fault is the draft's: the traffic of another batch size need not find it again."""
    both = [Traffic(GOOD), Traffic(GOOD, batch=32)] * 4
    sick = course(a_policy(), [*both, *[Traffic(DEAD)] * 2])

    assert {k for _, _, k in sick[-1].table} == {0}

    well = course(a_policy(), [Traffic(GOOD)] * 20 + both * 6, start=sick[-1])
    assert lengths(well)[-1] == 4
    assert lengths(well, batch=32)[-1] == 4


def test_recommend_tells_why_a_faulty_draft_should_not_propose() -> None:
    """It moves nothing."""
    policy = a_policy(mode=TuningMode.RECOMMEND)
    played = course(policy, [Traffic(DEAD)] * 6)

    assert set(lengths(played)) == {4}
    (advice,) = [c for d in played for c in d.changes if c.after == 0 and "faulty" in c.message]
    assert advice.advised
    why = {other.length: other for other in alternatives(played[-1].state, policy, 4)}
    assert why[0].reason is WhyNot.RECOMMENDED
    assert why[0].message.startswith("the draft is faulty: advised")
    assert why[1].reason is WhyNot.FAULTY_DRAFT


@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_bad_guesses_of_a_method_without_weights_are_weighed_by_goodput(method: str) -> None:
    """Text that repeats nothing is normal traffic: no fault, and K=0 only where it is faster."""
    played = course(a_policy(method=method), [Traffic(DEAD)] * 8)

    assert lengths(played)[-1] == 0
    assert all(decision.state.fault is None for decision in played)
    assert not any("faulty" in change.message for d in played for change in d.changes)


@pytest.mark.parametrize("acceptance", [0.08, 0.10, 0.12])
def test_acceptance_at_the_limit_of_a_fault_does_not_flap(acceptance: float) -> None:
    """An hour with drafts that cost next to nothing: neither speculation nor the alarm goes to and
    fro."""
    chance = random.Random(3)
    decision = first(a_policy())
    told, off = [], []
    for _ in range(720):
        near = chance.gauss(acceptance, math.sqrt(0.1 * 0.9 / 400))
        traffic = replace(HARDLY, acceptance=(near, 0.01, 0.0, 0.0), steps=100, spread=0.4)
        (decision,) = course(a_policy(), [traffic], start=decision, chance=chance)
        told.append(decision.state.fault is not None)
        off.append(lengths([decision]) == [0])

    assert sum(before != after for before, after in itertools.pairwise(told)) <= 12
    assert sum(before != after for before, after in itertools.pairwise(off)) <= 12


def test_one_weak_window_is_no_fault() -> None:
    """It can be an outlier: K=0 where that is better, no alarm, and soon back."""
    played = course(a_policy(), [Traffic(GOOD)] * 6 + [Traffic(DEAD)] + [Traffic(GOOD)] * 8)

    assert lengths(played)[-1] == 4
    assert all(decision.state.fault is None for decision in played)


def test_a_dead_draft_stays_on_where_plain_decoding_was_not_measured_better() -> None:
    """Without trials K=0 is unknown: the alarm is all there is."""
    played = course(a_policy(trial_share=0.0), [Traffic(DEAD)] * 10)

    assert 0 not in lengths(played)
    assert played[-1].healthy.reason is Reason.NO_ACCEPTANCE


def test_a_faulty_draft_is_probed_at_the_smallest_length_and_ever_less() -> None:
    """Probing costs least there, and hope fades, but never for ever."""
    played = course(a_policy(), [Traffic(GOOD)] * 20 + [Traffic(DEAD)] * 300)[30:]
    probes = [n for n in range(1, 290) if played[n].state.looks > played[n - 1].state.looks]

    assert all(looking(played[n]) == (1,) for n in probes)
    gaps = [after - before for before, after in itertools.pairwise(probes)]
    assert gaps[0] < 10
    assert gaps[0] < gaps[-1] <= 65


def test_a_recovered_draft_takes_its_old_estimates_back() -> None:
    """It collapsed and was repaired: what was known of it holds again, so it is soon back."""
    well = course(a_policy(), [Traffic(GOOD)] * 20)
    sick = course(a_policy(), [Traffic(DEAD)] * 10, start=well[-1])
    assert lengths(sick)[-1] == 0

    again = course(a_policy(), [Traffic(GOOD)] * 14, start=sick[-1])
    assert lengths(again)[-1] == 4
    assert again[-1].healthy.status is ConditionStatus.TRUE


def test_silent_drafts_are_told_and_teach_nothing() -> None:
    """Decoding at K=4 without a draft: speculation is silently off, which is no acceptance of 0."""
    policy = a_policy()
    well = course(policy, [Traffic(GOOD)] * 8)[-1]
    silent = a_silent_window()

    once = decide(silent, well.state, policy, Occasion(60.0))
    twice = decide(silent, once.state, policy, Occasion(65.0))

    assert once.healthy.reason is Reason.HEALTHY
    assert twice.healthy.reason is Reason.NO_DRAFTS
    assert replace(twice.state, broken=None) == well.state


def test_ngram_may_be_silent() -> None:
    """It makes no draft where it finds no match."""
    policy = a_policy(method="ngram")
    silent = a_silent_window()

    assert decide(silent, first(policy).state, policy, Occasion(5.0)).state.broken is None


def test_counters_that_contradict_each_other_teach_nothing() -> None:
    """E - 1 = accepted/drafts = sum of p_i, or the data is broken."""
    policy = a_policy()
    well = course(policy, [Traffic(GOOD)] * 8)[-1]
    window = Traffic(GOOD).window({4: 200})
    broken = replace(window, positions={**window.positions, Position(4, 1): Proposed(800, 10)})

    after = decide(broken, well.state, policy, Occasion(60.0))

    assert after.healthy.reason is Reason.COUNTERS_INCONSISTENT
    assert after.table == well.table
    assert replace(after.state, broken=None) == well.state


def test_bounds_end_a_look_beyond_them_while_the_counters_are_broken() -> None:
    """What the user forbids is not played, whatever is wrong with the evidence."""
    policy = a_policy()
    looks = (d for d in course(policy, [Traffic()] * 14) if max(looking(d), default=0) > 2)
    decision = next(d for d in looks if max(lengths([d])) <= 2)
    silent = decide(a_silent_window(), decision.state, policy, Occasion(100.0))
    assert silent.trials

    bounded = decide(None, silent.state, replace(policy, high=2), Occasion(101.0))
    untried = decide(None, silent.state, replace(policy, trial_share=0.0), Occasion(101.0))

    assert bounded.table == silent.table
    assert bounded.trials == untried.trials == ()
