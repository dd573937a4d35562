"""What a pass that ended in an error means for the next one."""

from __future__ import annotations

import logging

import pytest

from speculative_operator.cluster.manifests import Reference
from speculative_operator.cluster.queue import BackOff, Done, Outcome
from speculative_operator.controller.outcome import OTHERS_PAUSE_SECONDS, outcome_of
from speculative_operator.errors import ClusterFault, NotAllowed, NotOurs

QWEN = Reference("SpeculativeModel", "prod", "qwen")


@pytest.mark.parametrize(
    ("error", "outcome", "level"),
    [
        (NotOurs("Not applying Service prod/qwen"), Done(OTHERS_PAUSE_SECONDS), logging.INFO),
        (NotAllowed("exceeded quota"), Done(OTHERS_PAUSE_SECONDS), logging.INFO),
        (ClusterFault("the API server is down"), BackOff(), logging.WARNING),
        (ZeroDivisionError("division by zero"), BackOff(), logging.ERROR),
    ],
)
def test_an_error_says_when_to_look_again_and_is_logged_once(
    caplog: pytest.LogCaptureFixture, error: Exception, outcome: Outcome, level: int
) -> None:
    """What only others can change waits; a fault is tried again; only our own is an alarm."""
    with caplog.at_level(logging.INFO):
        assert outcome_of(error, QWEN) == outcome

    (record,) = caplog.records
    assert record.levelno == level
    assert "SpeculativeModel prod/qwen" in record.getMessage()


def test_a_fault_of_our_own_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    """It is what a report of it needs."""
    try:
        raise KeyError("missing")
    except KeyError as error:
        outcome_of(error, QWEN)

    assert "a fault of the operator" in caplog.text
    assert "Traceback" in caplog.text
