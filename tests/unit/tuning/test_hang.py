"""Engines that hang: told from those that are only slow, idle, silent or young."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from speculative_operator.tuning.hang import (
    FIRST_STEP_SECONDS,
    HANG_SECONDS,
    WITHOUT_PLUGIN_SECONDS,
    Pulse,
    pulse,
)
from speculative_operator.tuning.page import Page
from tests.support.tuner_world import without_plugin
from tests.support.windows import Traffic, a_page

WORKED = Traffic().window({2: 100})
EVERY = 5.0


def read(pages: Iterable[Page], every: float = EVERY) -> Pulse:
    """The pulse after pages that were read so often."""
    found = None
    for number, page in enumerate(pages):
        found = pulse(found, page, 1000.0 + number * every)
    assert found is not None
    return found


def standing_still(seconds: float, page: Page | None = None, every: float = EVERY) -> list[Page]:
    """Pages over so many seconds, of an engine that ended its last step just before the first."""
    page = page or a_page(WORKED)
    count = int(seconds / every) + 1
    return [replace_idle(page, number * every) for number in range(count)]


def replace_idle(page: Page, seconds: float) -> Page:
    """The page when the last step has ended so long ago."""
    return replace(page, idle_seconds=seconds if page.plugin else 0.0)


def test_requests_and_no_step_for_a_minute_is_a_hang() -> None:
    """Its /health says 200 all the while."""
    assert read(standing_still(HANG_SECONDS)).hangs
    assert not read(standing_still(HANG_SECONDS - EVERY)).hangs


def test_requests_that_wait_while_none_runs_count_too() -> None:
    """A scheduler that stands still runs nothing."""
    assert read(standing_still(60, a_page(WORKED, running=0, waiting=3))).hangs


def test_without_requests_there_is_nothing_to_do() -> None:
    """An idle engine ends no step for hours."""
    assert not read(standing_still(7200, a_page(WORKED, running=0))).hangs


def test_one_long_reading_says_nothing_of_the_time_between() -> None:
    """A request that came just before it finds an engine that was idle for long."""
    idle = a_page(WORKED, running=0, idle_seconds=7200)
    busy = a_page(WORKED, idle_seconds=7260)

    assert not read([idle, busy], every=60).hangs


def test_a_long_prompt_is_many_steps() -> None:
    """Nothing is given out for minutes, but steps end."""
    pages = [a_page(WORKED, idle_seconds=2.0) for _ in range(60)]

    assert not read(pages).hangs


def test_a_step_in_between_begins_anew() -> None:
    """Slow is not hung."""
    halves = standing_still(55)

    assert not read([*halves, *halves]).hangs


def test_the_first_step_may_compile_kernels() -> None:
    """For minutes, and a restart would begin it again."""
    fresh = a_page()

    assert not read(standing_still(FIRST_STEP_SECONDS - EVERY, fresh)).hangs
    assert read(standing_still(FIRST_STEP_SECONDS, fresh)).hangs


def test_another_start_of_the_engine_is_another_engine() -> None:
    """Its counters begin anew."""
    first = standing_still(55)
    second = standing_still(55, a_page(Traffic().window({2: 3})))

    assert not read([*first, *second]).hangs


@pytest.mark.parametrize(("seconds", "hangs"), [(60, False), (WITHOUT_PLUGIN_SECONDS, True)])
def test_without_the_plugin_more_patience_is_needed(seconds: float, *, hangs: bool) -> None:
    """vLLM's own page shows tokens given out, and a long prompt gives none."""
    page = without_plugin(a_page(WORKED))

    assert read(standing_still(seconds, page)).hangs is hangs
