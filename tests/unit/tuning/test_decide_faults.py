"""Decision sequences with faults: dead drafts, silent drafts, counters that lie."""

from __future__ import annotations

import itertools
from dataclasses import replace

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.page import Phase, Position, Proposed, RowKey
from speculative_operator.tuning.window import Window
from tests.support.windows import DEAD, GOOD, Traffic, a_policy, course, first, lengths, looking

SECONDS = 5.0


def a_silent_window() -> Window:
    """Decoding at K=4 without drafts."""
    row = Traffic().row(4, 200)
    row = row._replace(drafts=0, draft_tokens=0, accepted=0, generated=row.requests)
    return Window(seconds=SECONDS, rows={RowKey(4, 4, Phase.DECODE): row})


def test_an_unrelated_draft_is_left_within_four_windows() -> None:
    """Acceptance 0: the alarm, and K=0 because its goodput was measured to be higher."""
    played = course(a_policy(), [Traffic(DEAD)] * 4)

    assert lengths(played)[-1] == 0
    assert played[-1].healthy.status is ConditionStatus.FALSE
    assert played[-1].healthy.reason is Reason.NO_ACCEPTANCE
    reasons = [notice.reason for decision in played for notice in decision.notices]
    assert EventReason.SPECULATION_FAULTY in reasons
    assert EventReason.FELL_BACK in reasons


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
