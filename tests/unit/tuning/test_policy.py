"""Which K a user allows."""

from __future__ import annotations

import pytest

from speculative_operator.tuning.policy import WindowLimits
from tests.support.windows import a_policy


@pytest.mark.parametrize(
    ("low", "high", "arms"),
    [
        (0, 64, (0, 1, 3, 5, 7)),
        (1, 64, (1, 3, 5, 7)),
        (0, 4, (0, 1, 3)),
        (3, 3, (3,)),
        (0, 0, (0,)),
        (4, 4, (3,)),
        (2, 2, (1,)),
    ],
)
def test_arms_are_the_choices_and_0_within_the_bounds(
    low: int, high: int, arms: tuple[int, ...]
) -> None:
    """An engine has graphs for its choices only, so bounds between two leave the one below."""
    assert a_policy(choices=(1, 3, 5, 7), low=low, high=high).arms == arms


def test_one_arm_is_pinned() -> None:
    """Then there is nothing to measure."""
    assert a_policy(low=3, high=3).pinned == 3
    assert a_policy().pinned is None


@pytest.mark.parametrize(("k", "nearest"), [(0, 1), (1, 1), (2, 1), (3, 3), (9, 3)])
def test_a_length_outside_the_bounds_moves_to_the_nearest(k: int, nearest: int) -> None:
    """And stays among the choices."""
    assert a_policy(choices=(1, 3, 5), low=1, high=3).nearest_arm(k) == nearest


@pytest.mark.parametrize(
    ("seconds", "drafts", "times"),
    [(5.0, 400, 1), (5.0, 4000, 1), (60.0, 400, 1), (60.0, 60, 1), (60.0, 4800, 12), (21, 1700, 4)],
)
def test_a_long_window_counts_as_the_windows_that_it_bridges(
    seconds: float, drafts: float, times: int
) -> None:
    """An operator that was away for a minute has missed twelve of them, if there was traffic."""
    assert WindowLimits().times(seconds, drafts) == times


def test_where_k_cannot_change_live_bounds_do_not_move_the_start() -> None:
    """Status tells what the engines play."""
    assert a_policy(high=2, live=False).start_table == ((1, 64, 4),)
    assert a_policy(high=2).start_table == ((1, 64, 2),)
