"""The window that is open: when it closes, and that nothing is lost or counted twice."""

from __future__ import annotations

from dataclasses import replace

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.page import Page, Phase, RowKey
from speculative_operator.tuning.policy import WindowLimits
from speculative_operator.tuning.window import NoEvidence, Window
from tests.support.windows import Traffic, a_page

LIMITS = WindowLimits(drafts=400, least_seconds=5.0, most_seconds=60.0)
KEY = RowKey(4, 4, Phase.DECODE)


def page(steps: int, started: float = 100.0) -> Page:
    """The page of an engine that has made so many steps with four requests."""
    made = a_page(Traffic().window({4: steps}))
    return replace(made, counters=replace(made.counters, started=started))


def begun(**engines: int) -> Gathering:
    """A window whose engines had made so many steps at its start, second 0."""
    gathering = Gathering(opened=0.0)
    for uid, steps in engines.items():
        gathering = gathering.read(uid, page(steps), 0.0)
    return gathering.next(0.0)


def test_it_closes_with_enough_drafts_and_seconds() -> None:
    """Then it says enough."""
    assert begun(a=0).read("a", page(100), 5.0).closes(LIMITS, 5.0)


def test_enough_drafts_do_not_close_it_early() -> None:
    """A burst of one second is not the traffic of the minute."""
    assert not begun(a=0).read("a", page(1000), 4.0).closes(LIMITS, 4.0)


def test_too_few_drafts_keep_it_open() -> None:
    """A little longer may bring them."""
    assert not begun(a=0).read("a", page(99), 30.0).closes(LIMITS, 30.0)


def test_it_closes_at_the_latest_after_its_longest_time() -> None:
    """Or evidence would mix old and new traffic."""
    assert begun(a=0).read("a", page(99), 60.0).closes(LIMITS, 60.0)


def test_drafts_of_all_replicas_count() -> None:
    """They run the same revision."""
    gathering = begun(a=0, b=0).read("a", page(50), 5.0).read("b", page(50), 5.0)

    assert gathering.closes(LIMITS, 5.0)
    window = gathering.window()
    assert isinstance(window, Window)
    assert window.replicas == 2


def test_below_fifty_drafts_is_no_evidence() -> None:
    """No evidence is never zero."""
    gap = begun(a=0).read("a", page(12), 60.0).window()

    assert gap == NoEvidence(Reason.NOT_ENOUGH_DRAFTS, "too few drafts")


def test_an_engine_seen_for_the_first_time_only_sets_its_base() -> None:
    """What it did before nobody watched may be of its warm-up."""
    gathering = Gathering(opened=0.0).read("a", page(1000), 1.0)
    assert isinstance(gathering.window(), NoEvidence)

    window = gathering.read("a", page(1100), 5.0).window()
    assert isinstance(window, Window)
    assert window.rows[KEY].steps == 100


def test_a_restart_in_the_middle_starts_that_engine_again() -> None:
    """Its counters begin at 0, which is no loss of drafts."""
    gathering = begun(a=500).read("a", page(10, started=200.0), 3.0)
    assert isinstance(gathering.window(), NoEvidence)

    window = gathering.read("a", page(110, started=200.0), 6.0).window()
    assert isinstance(window, Window)
    assert window.rows[KEY].steps == 100


def test_a_silent_engine_loses_nothing() -> None:
    """Its counters went on; the next page that can be read has all of them."""
    silent = begun(a=0).silent("a", NoEvidence(Reason.METRICS_UNREACHABLE, "refused"))
    assert silent.window() == NoEvidence(Reason.METRICS_UNREACHABLE, "refused")

    window = silent.next(60.0).read("a", page(300), 65.0).window()
    assert isinstance(window, Window)
    assert window.rows[KEY].steps == 300


def test_windows_follow_one_another_without_a_gap() -> None:
    """Each step is in exactly one window."""
    gathering, absorbed = begun(a=0), 0.0
    for number in range(1, 6):
        gathering = gathering.read("a", page(137 * number), 5.0 * number)
        window = gathering.window()
        assert isinstance(window, Window)
        absorbed += window.rows[KEY].steps
        gathering = gathering.next(5.0 * number)

    assert absorbed == 137 * 5


def test_engines_that_are_gone_are_left_out() -> None:
    """Nobody can read their last page."""
    gathering = begun(a=0, b=0).read("a", page(100), 5.0).read("b", page(100), 5.0)

    window = gathering.of(frozenset({"a"})).window()

    assert isinstance(window, Window)
    assert window.replicas == 1


def test_bases_are_what_closed_windows_absorbed() -> None:
    """They are saved with the estimates; an open window is in neither."""
    gathering = begun(a=100).read("a", page(150), 3.0)

    assert gathering.bases["a"].rows[KEY].steps == 100
    assert gathering.next(5.0).bases["a"].rows[KEY].steps == 150
