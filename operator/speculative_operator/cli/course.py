"""The past as series over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from speculative_operator.tuning.buckets import bucket_of
from speculative_operator.tuning.explain import fleet_goodput
from speculative_operator.tuning.history import Entry
from speculative_operator.tuning.page import Position, Proposed
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.verdict import Change
from speculative_operator.tuning.window import Window, merged

MOST_APART = 600.0
"""Seconds without a window after which a curve is broken off."""


@dataclass(frozen=True, slots=True)
class Point:
    """One window with evidence: Unix time of its end, the batch bucket with most of its steps, K
    decided for that, and generated tokens a second and replica while decoding."""

    at: float
    bucket: int
    length: int
    goodput: float


def points(past: Iterable[Entry]) -> list[Point]:
    """The windows that have a goodput."""
    found = []
    for entry in past:
        goodput = fleet_goodput(entry.window) if entry.window is not None else None
        if entry.window is not None and goodput is not None:
            bucket = _busiest(entry.window)
            found.append(Point(entry.at, bucket, length_at(entry.table, bucket), goodput))
    return found


def _busiest(window: Window) -> int:
    steps: dict[int, float] = {}
    for key, counts in window.rows.items():
        bucket = bucket_of(key.cell)
        steps[bucket] = steps.get(bucket, 0.0) + counts.requests
    return max(steps, key=lambda bucket: (steps[bucket], bucket))


def stretches(found: Sequence[Point]) -> list[list[Point]]:
    """The points without the gaps between them."""
    parts: list[list[Point]] = []
    for point in found:
        if not parts or point.at - parts[-1][-1].at > MOST_APART:
            parts.append([])
        parts[-1].append(point)
    return parts


def changes(past: Iterable[Entry]) -> list[Change]:
    """All decisions, oldest first."""
    return [change for entry in past for change in entry.changes]


def acceptance(past: Sequence[Entry], windows: int = 40) -> dict[int, list[Proposed]]:
    """By K, the drafts and acceptances at each position, summed over the last windows."""
    last = [entry.window for entry in past if entry.window is not None][-windows:]
    sums = merged(last).positions
    return {
        k: [sums.get(Position(k, at), Proposed()) for at in range(k)]
        for k in sorted({at.k for at in sums})
    }
