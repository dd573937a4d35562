"""Numbers and times as people read them."""

from __future__ import annotations

import pytest

from speculative_operator.cli.words import ago, batches, duration, lengths


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (-3, "0 s"), (89, "89 s"), (95, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_a_duration_has_one_unit(seconds: float, text: str) -> None:
    """Nobody adds minutes to hours in the head."""
    assert duration(seconds) == text


def test_a_time_of_the_status_is_told_by_its_age() -> None:
    """A clock in another zone needs no thought."""
    assert ago("2027-01-15T08:00:00Z", 1_800_000_030.0) == "30 s ago"
    assert ago(None, 0.0) == "never"


def test_batch_sizes_end_at_the_largest() -> None:
    """A bucket of 33 to 64 where only 48 fit."""
    assert [batches(bucket, 48) for bucket in (1, 2, 8, 64)] == ["1", "2", "5-8", "33-48"]


def test_a_schedule_is_one_line() -> None:
    """By batch size, unless it is the same everywhere."""
    assert lengths(((1, 64, 3),)) == "3"
    assert lengths(((1, 1, 6), (2, 64, 4))) == "1: 6, 2-64: 4"
