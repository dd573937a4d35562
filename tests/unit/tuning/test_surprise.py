"""Chance, outlier or change: what a surprise is taken for."""

from __future__ import annotations

import pytest

from speculative_operator.tuning.surprise import outlier_chance, rather_changed

SPREAD = 0.1
"""Standard deviation of what is expected of a time."""


@pytest.mark.parametrize(
    ("errors", "windows", "changed"),
    [(3.2, 60, True), (3.2, 1, False), (2.0, 60, False), (0.0, 400, False), (3.4, 0, False)],
)
def test_a_surprise_after_long_is_rather_a_change_than_chance(
    errors: float, windows: int, changed: bool
) -> None:
    """Too short by so many standard errors. The longer nobody looked, the more may have changed."""
    assert rather_changed(-errors * SPREAD, SPREAD**2, windows) is changed


def test_twice_as_long_is_rather_an_outlier() -> None:
    """One time in fifty is; a change by exactly so much is rare."""
    assert outlier_chance(0.6, SPREAD**2) > 0.99
    assert not rather_changed(0.6, SPREAD**2, 10)


def test_what_is_expected_is_no_outlier() -> None:
    """Nor is what is too short."""
    assert outlier_chance(0.0, SPREAD**2) < 0.01
    assert outlier_chance(-0.3, SPREAD**2) < 0.05
