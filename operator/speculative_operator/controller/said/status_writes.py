"""When a status is worth a write. Pure.

A change of state is written at once. What is measured moves all the time: alone it is written once
a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MEASURED_EVERY_SECONDS: Final = 60.0

MEASURED: Final = frozenset({"evidence", "proposalLength"})
MEASURED_IN_ENTRIES: Final = {"replicaDetails": "schedule", "decisions": "outcome"}

Wire = Mapping[str, Any]
"""A status as the API server has it."""


def seconds_until_write(before: Wire, after: Wire, *, since_measured: float) -> float | None:
    """0 for now, more for later, None while nothing has changed. `since_measured` in seconds."""
    if before == after:
        return None
    if _decisive(before) != _decisive(after):
        return 0.0
    return max(0.0, MEASURED_EVERY_SECONDS - since_measured)


def _decisive(status: Wire) -> Wire:
    """The status without what moves though nothing was decided.

    K at the batch size seen most follows the traffic; a decision shows in the schedule too.
    """
    return {
        **{key: value for key, value in status.items() if key not in MEASURED},
        **{
            name: [_less(entry, measured) for entry in status.get(name, ())]
            for name, measured in MEASURED_IN_ENTRIES.items()
        },
    }


def _less(entry: Wire, left_out: str) -> Wire:
    return {key: value for key, value in entry.items() if key != left_out}
