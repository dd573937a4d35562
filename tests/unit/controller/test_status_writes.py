"""When a status is worth a write."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.controller.said.status_writes import (
    MEASURED_EVERY_SECONDS,
    seconds_until_write,
)

DECISION = {"before": 4, "after": 2, "reason": "ProposalLengthChanged"}
REPLICA = {"name": "qwen-0", "ready": True, "schedule": "0123456789ab"}
TUNED = {"type": "Tuned", "status": "True", "reason": "BestMeasured"}

SETTLED: dict[str, Any] = {
    "readyReplicas": 1,
    "evidence": {"acceptance": "0.700"},
    "proposalLength": 2,
    "conditions": [TUNED],
    "replicaDetails": [REPLICA],
    "decisions": [DECISION],
}
MEASURED: dict[str, dict[str, Any]] = {
    "evidence": {"evidence": {"acceptance": "0.710"}},
    "K at the batch size seen most": {"proposalLength": 3},
    "schedule in force": {"replicaDetails": [{**REPLICA, "schedule": "ba9876543210"}]},
    "outcome": {"decisions": [{**DECISION, "outcome": "goodput +4%"}]},
}


def test_an_unchanged_status_is_never_written() -> None:
    """However long ago the last write was."""
    assert seconds_until_write(SETTLED, dict(SETTLED), since_measured=1e6) is None


def test_a_change_of_state_is_written_at_once() -> None:
    """The user waits for it."""
    after = {**SETTLED, "readyReplicas": 2}

    assert seconds_until_write(SETTLED, after, since_measured=0) == 0


@pytest.mark.parametrize("change", MEASURED.values(), ids=MEASURED)
def test_what_is_measured_is_alone_written_once_a_minute(change: dict[str, Any]) -> None:
    """It moves with every window and with the traffic."""
    after = {**SETTLED, **change}

    assert seconds_until_write(SETTLED, after, since_measured=20) == MEASURED_EVERY_SECONDS - 20
    assert seconds_until_write(SETTLED, after, since_measured=MEASURED_EVERY_SECONDS) == 0


@pytest.mark.parametrize(
    "decisive",
    [
        {"decisions": [{**DECISION, "after": 1}, DECISION]},
        {"conditions": [{**TUNED, "status": "False", "reason": "Applying"}]},
        {"replicaDetails": [{**REPLICA, "ready": False}]},
        {"mode": "Fallback"},
        {"schedule": [{"minBatch": 1, "maxBatch": 64, "proposalLength": 0}]},
    ],
)
@pytest.mark.parametrize("measured", MEASURED.values(), ids=MEASURED)
def test_what_is_decided_takes_what_is_measured_with_it(
    measured: dict[str, Any], decisive: dict[str, Any]
) -> None:
    """A user who reads of a decision reads the K that it led to."""
    after = {**SETTLED, **measured, **decisive}

    assert seconds_until_write(SETTLED, after, since_measured=0) == 0


def test_a_new_model_gets_its_status_at_once() -> None:
    """There is nothing yet that could stand."""
    assert seconds_until_write({}, SETTLED, since_measured=0) == 0
