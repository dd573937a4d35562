"""E(K) from rows of counters: own, cut off, carried on; and what a change of traffic does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from speculative_operator.tuning.acceptance import Acceptance
from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.page import Phase, RowKey
from speculative_operator.tuning.prior import BLOCK, SEQUENTIAL
from speculative_operator.tuning.rows import Row, window_rows
from speculative_operator.tuning.window import Window
from tests.support.windows import NOISY, Traffic


def known(
    steps: dict[int, int], acceptance: tuple[float, ...] = NOISY, batch: int = 4
) -> Acceptance:
    """What one window with so many steps at each K teaches."""
    return Acceptance().after(Traffic(acceptance, batch=batch).window(steps), SEQUENTIAL)


def estimated(acceptance: Acceptance, k: int) -> Estimate | None:
    """log E(K), or None where no draft of any K was seen."""
    return acceptance.lengths((k,), SEQUENTIAL).get(k)


def length(acceptance: Acceptance, k: int) -> float:
    """E(K)."""
    estimate = estimated(acceptance, k)
    assert estimate is not None
    return math.exp(estimate.mean)


def test_e_is_one_and_the_sum_of_the_chances_of_each_position() -> None:
    """The bonus token comes with each step."""
    assert length(known({4: 500}), 4) == pytest.approx(1 + sum(NOISY), rel=1e-3)


def test_without_drafts_e_is_exactly_one() -> None:
    """At K=0 a request gets the target's own token and nothing else."""
    estimate = estimated(Acceptance(), 0)

    assert estimate == (0.0, 0.0)


def test_of_a_length_nobody_knows_nothing_is_said() -> None:
    """No evidence is never zero."""
    assert estimated(Acceptance(), 3) is None


def test_a_smaller_length_is_read_from_a_larger_ones_positions() -> None:
    """Counters taken at a large K give p_1 … p_K, so E of every smaller one."""
    assert length(known({4: 500}), 2) == pytest.approx(1 + sum(NOISY[:2]), rel=0.02)


def test_a_larger_length_is_carried_on_with_growing_doubt() -> None:
    """Later positions were never seen."""
    acceptance = known({2: 500})
    near, far = estimated(acceptance, 3), estimated(acceptance, 4)

    assert near is not None
    assert far is not None
    assert far.variance > near.variance
    assert length(acceptance, 4) > length(acceptance, 3) > length(acceptance, 2)


def test_an_own_row_outweighs_one_cut_off() -> None:
    """Block drafters accept less at the same position when K is larger."""
    both = {
        RowKey(2, 4, Phase.DECODE): Traffic((0.7, 0.5)).row(2, 500),
        RowKey(4, 4, Phase.DECODE): Traffic().row(4, 500),
    }
    window = Window(
        seconds=5.0,
        rows=both,
        positions={
            **Traffic().window({4: 500}).positions,
            **Traffic((0.7, 0.5)).window({2: 500}).positions,
        },
    )

    estimate = Acceptance().after(window, SEQUENTIAL).lengths((2,), BLOCK)[2]

    assert math.exp(estimate.mean) == pytest.approx(2.2, rel=0.06)


def test_few_drafts_are_less_sure_than_many() -> None:
    """A decision waits until the doubt is small enough."""
    few, many = estimated(known({4: 13}), 4), estimated(known({4: 1300}), 4)

    assert few is not None
    assert many is not None
    assert few.variance > 4 * many.variance


def test_no_acceptance_in_a_few_drafts_is_not_certainty() -> None:
    """A variance of zero would let ten unlucky drafts decide."""
    estimate = estimated(known({4: 3}, (0.0, 0.0, 0.0, 0.0)), 4)

    assert estimate is not None
    assert math.sqrt(estimate.variance) > 0.03


def test_requests_without_a_draft_count_in_e() -> None:
    """n-gram drafts only where it finds a match: E is tokens a request and step, not a draft."""
    row = replace(Row(requests=1000.0, drafts=250.0, accepted=(200.0, 150.0)))

    assert row.brought == pytest.approx(0.35)
    assert row.positions == (0.8, 0.6)


def test_requests_that_bring_prompt_tokens_do_not_count() -> None:
    """They are scheduled in the step and give no draft token a chance."""
    decode = Traffic((0.8, 0.6)).row(2, 100)
    mixed = decode._replace(requests=decode.requests * 3)
    positions = Traffic((0.8, 0.6)).window({2: 200}).positions
    rows = {RowKey(2, 4, Phase.DECODE): decode, RowKey(2, 12, Phase.MIXED): mixed}

    row = window_rows(Window(seconds=5.0, rows=rows, positions=positions))[2]

    assert 1 + row.brought == pytest.approx(2.4)


def test_ngram_counts_the_requests_without_a_match() -> None:
    """Such a step brings one token; leaving it out would flatter K."""
    decode = Traffic((0.8, 0.6)).row(2, 100)
    sparse = decode._replace(requests=decode.requests * 4)
    positions = Traffic((0.8, 0.6)).window({2: 100}).positions

    window = Window(seconds=5.0, rows={RowKey(2, 4, Phase.DECODE): sparse}, positions=positions)

    assert 1 + window_rows(window)[2].brought == pytest.approx(1.35)


def test_a_window_of_an_hour_does_not_outweigh_those_of_today() -> None:
    """An operator that was away differences from where it stopped."""
    acceptance = known({4: 500_000}, (0.5, 0.3, 0.2, 0.1))
    for _ in range(25):
        acceptance = acceptance.after(Traffic((0.52, 0.31, 0.2, 0.1)).window({4: 100}), SEQUENTIAL)

    assert length(acceptance, 4) == pytest.approx(2.13, rel=0.003)


def test_old_windows_fade() -> None:
    """Traffic changes, and the estimate has to follow."""
    acceptance = known({4: 500}, (0.5, 0.3, 0.2, 0.1))
    for _ in range(30):
        acceptance = acceptance.after(Traffic((0.52, 0.31, 0.2, 0.1)).window({4: 500}), SEQUENTIAL)

    assert length(acceptance, 4) == pytest.approx(2.13, rel=0.005)


COLLAPSED = (0.2, 0.05, 0.0, 0.0)


def test_prompts_of_the_minute_are_no_change_of_traffic() -> None:
    """Windows differ by more than sampling explains."""
    liked = tuple(p + 0.12 * p * (1 - p) for p in NOISY)
    acceptance = known({4: 2000})

    after = acceptance.after(Traffic(liked).window({4: 2000}), SEQUENTIAL)

    assert after.former == {}


def test_a_window_that_contradicts_puts_all_older_rows_aside() -> None:
    """A change of traffic concerns every K; each window of waiting costs what was lost."""
    acceptance = known({4: 500, 2: 100})

    after = acceptance.after(Traffic(COLLAPSED).window({4: 500}), SEQUENTIAL)

    assert after.rows.keys() == {4}
    assert length(after, 4) == pytest.approx(1.25, rel=1e-3)
    assert after.former == acceptance.rows


def test_what_was_known_before_a_change_comes_back_with_it() -> None:
    """A draft that is repaired is the draft that it was; one small look is enough to tell."""
    sound = known({4: 500, 2: 100})
    fallen = sound
    for _ in range(3):
        fallen = fallen.after(Traffic(COLLAPSED).window({4: 500}), SEQUENTIAL)

    again = fallen.after(Traffic().window({1: 100}), SEQUENTIAL)

    assert length(again, 4) == pytest.approx(length(sound, 4), rel=0.01)


def test_a_trial_with_one_request_is_enough_to_see_a_change() -> None:
    """A tenth of a window has forty drafts there, and at K=0 nothing else has any."""
    fallen = known({1: 2000}, COLLAPSED, batch=1)

    after = fallen.after(Traffic(batch=1).window({1: 40}), SEQUENTIAL)

    assert length(after, 1) == pytest.approx(1.61, rel=0.01)


def test_what_was_known_comes_back_only_where_the_window_agrees_with_it() -> None:
    """The change may be a third thing; a longer proposal than any that was known is compared by
    the positions that both have."""
    fallen = known({2: 500}, COLLAPSED).after(Traffic().window({4: 500}), SEQUENTIAL)
    assert length(fallen, 4) == pytest.approx(2.34, rel=0.01)

    less = fallen.after(Traffic((0.4, 0.2, 0.1, 0.05)).window({4: 500}), SEQUENTIAL)

    assert less.rows.keys() == {4}


def test_a_change_within_a_window_does_not_make_forget_what_was_before_it() -> None:
    """The window in which it happened is half the one and half the other."""
    sound = known({4: 500})
    half = Traffic((0.4, 0.2, 0.1, 0.07)).window({4: 500})

    after = sound.after(half, SEQUENTIAL).after(Traffic(COLLAPSED).window({4: 500}), SEQUENTIAL)

    assert after.former == sound.rows


def test_a_window_at_k_0_teaches_nothing_of_acceptance() -> None:
    """Nothing was drafted, so nothing was rejected."""
    assert window_rows(Traffic().window({0: 500})) == {}


def test_a_few_unlucky_drafts_do_not_make_forget_what_was_before_a_collapse() -> None:
    """At K=0 a draft is seen in small looks only, and one of them lies far off now and then: what
    is worth coming back to is the state that differs most."""
    sound = known({4: 500, 2: 100})
    fallen = sound
    for _ in range(6):
        fallen = fallen.after(Traffic(COLLAPSED).window({4: 500}), SEQUENTIAL)

    unlucky = fallen.after(Traffic((0.0, 0.0, 0.0, 0.0)).window({4: 500}), SEQUENTIAL)

    assert unlucky.rows.keys() == {4}
    assert unlucky.former == sound.rows
