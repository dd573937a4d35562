"""A schedule on its way: when one that plays the same is written all the same."""

from __future__ import annotations

import pytest

from speculative_operator.controller.tuner.delivery import Delivery
from speculative_operator.tuning.schedule import ScheduleFile
from tests.support.windows import a_page

TABLE = ((1, 64, 3),)
WANTED = ScheduleFile(TABLE, lease=("one", 2))


@pytest.mark.parametrize(
    ("written", "read", "again"),
    [
        pytest.param(("one", 1), ("one", 1), False, id="the term before wrote it"),
        pytest.param(("one", 1), None, False, id="no engine has read any"),
        pytest.param(("one", 1), ("one", 2), True, id="an engine has read a later term's"),
        pytest.param(("another", 9), ("one", 2), False, id="two Leases have no order"),
        pytest.param(None, ("one", 2), False, id="the first of a revision has no lease"),
    ],
)
def test_a_text_that_engines_refuse_is_written_again(
    written: tuple[str, int] | None, read: tuple[str, int] | None, again: bool
) -> None:
    """They refuse what an earlier term of the same Lease wrote; else a failover writes nothing."""
    current = ScheduleFile(TABLE, lease=written).to_json()

    due = Delivery(0.0).to_write(WANTED, current, (a_page(lease=read),), 0.0)

    assert due == ((WANTED.to_json() if again else current), 1)
