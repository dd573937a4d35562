"""Differences of counters, and what is no evidence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from live_speculation.ledger import HELD, Ledger, Outcome, Step
from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.cost import step_time
from speculative_operator.tuning.faults import broken
from speculative_operator.tuning.memory import read_positions, read_rows
from speculative_operator.tuning.page import Counts, Phase, Position, Proposed, RowKey
from speculative_operator.tuning.window import NoEvidence, Window, difference, merged
from tests.support.windows import Traffic, a_page

KEY = RowKey(4, 4, Phase.DECODE)


def grown(steps: int) -> Window:
    """An engine's counters after so many steps at K=4."""
    return Traffic().window({4: steps})


def test_a_window_is_what_the_counters_grew_by() -> None:
    """Everything is estimated from differences, so that a new operator can go on anywhere."""
    window = difference(a_page(grown(100)).counters, a_page(grown(250)), 5.0)

    assert isinstance(window, Window)
    assert window.rows[KEY].steps == 150
    assert window.drafts == 600
    assert window.positions[Position(4, 0)].drafted == 600


def test_a_row_that_appears_counts_from_zero() -> None:
    """Rows are there once they are not empty, so a first trial has no row before."""
    window = difference(a_page().counters, a_page(grown(10)), 5.0)

    assert isinstance(window, Window)
    assert window.rows[KEY].steps == 10


def test_times_that_were_held_back_are_left_out_of_the_window_in_which_they_come() -> None:
    """The first steps of a row are counted at once and timed later: their tokens, beside the few
    requests of a window that ends in between, would contradict its counters."""
    ledger, pages = Ledger(), []
    for booked in (HELD - 1, 1, 10):
        for _ in range(booked):
            ledger.book(Step(4, 4, mixed=False, timed=True, began=0.0), 0.02, 8, DRAFTED)
        pages.append(a_page(_told(ledger)))
    first, second, third = pages

    held = difference(first.counters, second, 5.0)
    timed = difference(second.counters, third, 5.0)

    assert isinstance(held, Window)
    assert held.rows[KEY]._replace(requests=0, drafts=0, draft_tokens=0, accepted=0) == Counts()
    assert held.rows[KEY].requests == 4
    assert broken(held, "eagle3") is None
    assert isinstance(timed, Window)
    assert (timed.rows[KEY].steps, timed.rows[KEY].generated) == (10, 80)


DRAFTED = Outcome(drafts=4, draft_tokens=16, accepted=4, drafted_at=(4,) * 4, accepted_at=(4,))


def _told(ledger: Ledger) -> Window:
    books = ledger.copy()
    return Window(5.0, rows=read_rows(books.rows), positions=read_positions(books.positions))


def test_an_engine_that_counts_no_steps_keeps_its_tokens() -> None:
    """vLLM's own page may lack them: an older one, or a Prometheus that drops histograms."""
    pages = [
        a_page(Window(5.0, rows={RowKey(4, None, Phase.ANY): Counts(**sums)}))
        for sums in (
            {"drafts": 10, "requests": 10, "generated": 12},
            {"drafts": 10, "requests": 110, "generated": 1012},
        )
    ]

    window = difference(pages[0].counters, pages[1], 5.0)

    assert isinstance(window, Window)
    (row,) = window.rows.values()
    assert row.generated == 1000
    assert broken(window, "eagle3") is not None


def test_rows_that_did_not_grow_are_left_out() -> None:
    """An arm that nobody played in this window says nothing about it."""
    before = Traffic().window({4: 10, 2: 10})
    after = Traffic().window({4: 20, 2: 10})

    window = difference(a_page(before).counters, a_page(after), 5.0)

    assert isinstance(window, Window)
    assert set(window.rows) == {KEY}


def test_a_restarted_engine_is_no_evidence() -> None:
    """Counters that went back would read as zero acceptance and switch speculation off."""
    after = a_page(grown(10))
    restarted = replace(after, counters=replace(after.counters, started=200.0))

    assert isinstance(difference(a_page(grown(100)).counters, restarted, 5.0), NoEvidence)


@pytest.mark.parametrize("field", Counts._fields)
def test_any_counter_that_shrinks_is_no_evidence(field: str) -> None:
    """One wrong counter is enough: the others are from the same page."""
    before, after = a_page(grown(100)), a_page(grown(200))
    shrunk = before.counters.rows[KEY]._asdict()[field] - 1
    rows = {KEY: after.counters.rows[KEY]._replace(**{field: shrunk})}
    broken = replace(after, counters=replace(after.counters, rows=rows))

    gap = difference(before.counters, broken, 5.0)

    assert isinstance(gap, NoEvidence)
    assert gap.reason is Reason.METRICS_INVALID


def test_a_row_that_is_gone_is_no_evidence() -> None:
    """A page that lost a row is of other counters than the one before."""
    gap = difference(a_page(Traffic().window({4: 10, 2: 10})).counters, a_page(grown(20)), 5.0)

    assert isinstance(gap, NoEvidence)


def test_an_engine_that_stands_still_with_requests_is_no_evidence() -> None:
    """It hangs: its counters are true, but the window would be of a sick engine."""
    hung = a_page(grown(200), running=3, idle_seconds=120.0)

    assert isinstance(difference(a_page(grown(100)).counters, hung, 60.0), NoEvidence)


def test_counters_that_stand_still_under_load_are_no_evidence() -> None:
    """Somebody on the way answers with an old page."""
    old = a_page(grown(100), running=4)

    gap = difference(old.counters, old, 60.0)

    assert isinstance(gap, NoEvidence)
    assert "stand still" in gap.message
    assert isinstance(difference(old.counters, old, 5.0), Window)


def test_a_page_that_is_older_than_the_window_does_not_stand_still() -> None:
    """Prometheus scrapes every half minute or so; between two scrapes its page is the same."""
    old = a_page(grown(100), running=4, age=40.0)

    window = difference(old.counters, old, 60.0)

    assert isinstance(window, Window)
    assert not window.rows


def test_an_idle_engines_counters_may_stand_still() -> None:
    """It is not stuck: it has nothing to do."""
    idle = a_page(grown(100), running=0, idle_seconds=60.0)

    assert isinstance(difference(idle.counters, idle, 60.0), Window)


def test_windows_of_replicas_are_added() -> None:
    """Replicas of one model see the same traffic and share their evidence."""
    fleet = merged([grown(100), Traffic().window({4: 50, 2: 5})])

    assert fleet.replicas == 2
    assert fleet.rows[KEY].steps == 150
    assert fleet.rows[RowKey(2, 4, Phase.DECODE)].steps == 5
    assert fleet.positions[Position(4, 0)].drafted == 600


def test_at_k_0_request_steps_are_the_evidence() -> None:
    """No drafts are made there, and yet time passes and tokens come."""
    window = Traffic(batch=4).window({0: 50, 4: 10})

    assert window.weight == 50 * 4 + 10 * 4


def test_sums_at_one_k_go_over_all_batch_sizes() -> None:
    """Acceptance does not depend on the batch."""
    window = Window(
        seconds=1.0,
        rows={
            RowKey(4, 4, Phase.DECODE): Counts(drafts=3),
            RowKey(4, 8, Phase.MIXED): Counts(drafts=4),
            RowKey(2, 4, Phase.DECODE): Counts(drafts=9),
        },
        positions={Position(4, 0): Proposed(7, 5)},
    )

    assert window.total(4).drafts == 7
    assert window.total(4, Phase.DECODE).drafts == 3


def plain(accepted: tuple[float, ...]) -> Window:
    """Of an engine without the plugin, which shows as many positions as its capacity."""
    row = Counts(drafts=100, draft_tokens=200, accepted=sum(accepted), generated=200, requests=100)
    return Window(
        seconds=5.0,
        rows={RowKey(4, None, Phase.ANY): row},
        positions={Position(4, at): Proposed(100, count) for at, count in enumerate(accepted)},
    )


def test_sums_without_steps_are_those_of_the_k_that_is_played() -> None:
    """Positions that no draft reached are not positions at which all were refused."""
    window = plain((60, 40, 0, 0)).as_played(2)

    assert set(window.rows) == {RowKey(2, None, Phase.ANY)}
    assert set(window.positions) == {Position(2, 0), Position(2, 1)}


def test_positions_that_were_reached_are_kept() -> None:
    """Somewhere a longer K was played; without them the sums would contradict each other."""
    window = plain((60, 40, 10, 0)).as_played(2)

    assert set(window.rows) == {RowKey(3, None, Phase.ANY)}
    assert len(window.positions) == 3


def test_the_mean_time_and_batch_of_all_steps_make_a_row_of_them() -> None:
    """100 steps of three requests, 20 ms each: as `seconds` each request tells of each step."""
    row = Counts(steps=100, seconds=6.0, requests=300, drafts=300, accepted=150, generated=460)
    window = Window(seconds=5.0, rows={RowKey(4, None, Phase.ANY): row}).as_played(4)

    ((key, played),) = window.rows.items()
    assert key == RowKey(4, 3, Phase.DECODE)
    assert played.seconds == pytest.approx(2.0)
    assert played.generated == 450
    time = step_time(4, played)
    assert time is not None
    assert math.exp(time.mean) == pytest.approx(20_000)


def test_timed_steps_know_their_k() -> None:
    """The plugin counts by the K asked for."""
    window = Traffic().window({4: 100, 0: 10})

    assert window.as_played(2) == window
