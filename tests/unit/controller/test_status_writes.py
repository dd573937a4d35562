"""When a status is worth a write."""

from __future__ import annotations

from typing import Any

from speculative_operator.controller.status_writes import (
    MEASURED_EVERY_SECONDS,
    seconds_until_write,
)

SETTLED: dict[str, Any] = {"readyReplicas": 1, "evidence": {"acceptance": "0.700"}}


def test_an_unchanged_status_is_never_written() -> None:
    """However long ago the last write was."""
    assert seconds_until_write(SETTLED, dict(SETTLED), since_measured=1e6) is None


def test_a_change_of_state_is_written_at_once() -> None:
    """The user waits for it."""
    after = {**SETTLED, "readyReplicas": 2}

    assert seconds_until_write(SETTLED, after, since_measured=0) == 0


def test_numbers_alone_are_written_once_a_minute() -> None:
    """They move with every window."""
    after = {**SETTLED, "evidence": {"acceptance": "0.710"}}

    assert seconds_until_write(SETTLED, after, since_measured=20) == MEASURED_EVERY_SECONDS - 20
    assert seconds_until_write(SETTLED, after, since_measured=MEASURED_EVERY_SECONDS) == 0


def test_a_new_model_gets_its_status_at_once() -> None:
    """There is nothing yet that could stand."""
    assert seconds_until_write({}, SETTLED, since_measured=0) == 0
