"""Each fault under steady load; afterwards all is as the spec says, and nothing was lost for it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from local import audit
from tests.chaos import checker
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.stage import Stage
from tests.chaos.table import ROWS, Row

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[pytest.mark.long] if fault.long else [])
        for fault in FAULTS
    ],
)
def test_what_a_fault_has_broken_heals_and_nothing_is_lost(stage: Stage, fault: Fault) -> None:
    """See `checker` for what must hold."""
    since, decided = datetime.now(UTC), stage.served.status().get("decisions", [])

    began = time.monotonic()
    times = fault.inject(stage)
    over = time.monotonic()
    seen = stage.healed()
    healed = time.monotonic()

    asked = stage.clients.since(began)
    ROWS.append(
        Row(
            fault=fault.name,
            times=times,
            sent=len(asked),
            again=sum(each.tries > 1 for each in asked),
            lost=sum(bool(each.lost) for each in asked),
            lasted=over - began,
            healed=healed - over,
        )
    )
    ours = (
        each for each in audit.requests(since) if each.writes and each.agent == stage.gate.agent
    )
    complaints = [
        *checker.requests(asked, cut=fault.cut, outage=fault.outage),
        *checker.writes(ours, stage.served.namespace),
        *checker.decisions(decided, seen.status.get("decisions", []), fault.justified),
    ]
    assert not complaints, "\n".join(complaints)
