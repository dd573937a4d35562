"""Handing a schedule on until the engines report it."""

from __future__ import annotations

import pytest

from speculative_operator.tuning.application import GIVEN_UP_AFTER, Application
from tests.support.windows import a_page

DIGEST = "abcdef012345"


def attempts(until: float) -> list[float]:
    """When a schedule that nobody takes up is handed on."""
    application, moments = Application(DIGEST, since=0.0), []
    for tenth in range(round(10 * until)):
        now = tenth / 10
        if application.due(now):
            moments.append(now)
            application = application.attempted()
    return moments


def test_it_is_handed_on_again_after_2_4_and_8_seconds() -> None:
    """The kubelet's two watches race, and an annotation that does not change is no event."""
    assert attempts(120.0) == [0.0, 2.0, 6.0, 14.0]


def test_after_the_last_attempt_it_is_late() -> None:
    """Then only the kubelet's own sync is left, and the condition says so."""
    application = Application(DIGEST, since=0.0)

    assert not application.late(GIVEN_UP_AFTER)
    assert application.late(GIVEN_UP_AFTER + 0.1)


def test_it_is_done_when_every_tunable_engine_plays_it() -> None:
    """One engine behind still measures the old K."""
    application = Application(DIGEST, since=0.0)
    plays, other = a_page(hash_in_force=DIGEST), a_page(hash_in_force="other")

    assert application.seen([plays, plays], 1.0).in_force
    assert not application.seen([plays, other], 1.0).in_force


def test_engines_that_cannot_be_tuned_do_not_count() -> None:
    """They will never report the hash, so waiting would not end."""
    untunable = a_page(tunable=False, reason="suffix")

    assert Application(DIGEST, 0.0).seen([a_page(hash_in_force=DIGEST), untunable], 1.0).in_force


@pytest.mark.parametrize(
    ("running", "idle", "in_force"), [(0, 5.0, True), (0, 0.2, False), (3, 5.0, False)]
)
def test_an_idle_engine_needs_only_have_read_it(running: int, idle: float, in_force: bool) -> None:
    """It makes no step that could put the schedule in force; its next one will."""
    page = a_page(hash_read=DIGEST, running=running, idle_seconds=idle)

    assert Application(DIGEST, 0.0).seen([page], 1.0).in_force is in_force


def test_an_engine_that_turns_up_with_another_schedule_undoes_it() -> None:
    """A new pod may have mounted an older file."""
    done = Application(DIGEST, 0.0).seen([a_page(hash_in_force=DIGEST)], 1.0)

    assert not done.seen([a_page(hash_in_force=DIGEST), a_page()], 1.0).in_force


def test_a_page_from_before_it_was_handed_on_says_nothing_of_it() -> None:
    """Prometheus shows what an engine said before; the hash that it names may be that of an older
    schedule which is now played again."""
    application = Application(DIGEST, since=100.0)
    before, after = a_page(hash_in_force=DIGEST, age=10.0), a_page(hash_in_force=DIGEST, age=1.0)

    assert not application.seen([before], 105.0).in_force
    assert not application.seen([before, after], 105.0).in_force
    assert application.seen([after], 105.0).in_force
