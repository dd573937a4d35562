"""What came of each fault, as a table that is printed at the end of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`again` counts requests that had to be sent more than once, `lost` those without an answer;
    `lasted` and `healed` are seconds, the latter from the end of the fault."""

    fault: str
    times: int
    sent: int
    again: int
    lost: int
    lasted: float
    healed: float


ROWS: list[Row] = []
"""Of this run, in its order."""

HEAD = ("fault", "times", "sent", "again", "lost", "lasted s", "healed s")


def lines(rows: Sequence[Row]) -> list[str]:
    """The head and a line for each row; nothing without rows."""
    cells = [
        (
            row.fault,
            str(row.times),
            str(row.sent),
            str(row.again),
            str(row.lost),
            f"{row.lasted:.1f}",
            f"{row.healed:.1f}",
        )
        for row in rows
    ]
    if not cells:
        return []
    widths = [max(map(len, column)) for column in zip(HEAD, *cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in (HEAD, *cells)
    ]
