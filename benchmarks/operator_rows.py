"""Rows of the operator's benchmark: what was found, beside the floor, the peers and the goal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("", "operator", "bare client", "best peer", "goal", "met")


@dataclass(frozen=True)
class Row:
    """One line. `best_peer` is the best full operator that was measured, see docs/development.md.

    `met` is None where there is no goal.
    """

    what: str
    operator: str
    bare: str = ""
    best_peer: str = ""
    goal: str = ""
    met: bool | None = None

    def cells(self) -> Sequence[str]:
        """As text, in the order of HEAD."""
        met = {None: "", True: "yes", False: "no"}[self.met]
        return (self.what, self.operator, self.bare, self.best_peer, self.goal, met)


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile of times, in milliseconds."""

    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Of times in seconds."""
        ordered = sorted(seconds)
        high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        return cls(statistics.median(ordered) * 1000, high * 1000)

    def __str__(self) -> str:
        return f"{self.p50:.0f}/{self.p95:.0f}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in lines
    )
