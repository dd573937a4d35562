"""When a status is worth a write. Pure.

A change of state is written at once. Measured numbers move all the time: alone they are written
once a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MEASURED_EVERY_SECONDS: Final = 60.0

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
    """The status without the numbers that move with every window."""
    return {key: value for key, value in status.items() if key != "evidence"}
