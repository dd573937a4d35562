"""Batch buckets: the plugin's cells merged by powers of two, and only those that traffic comes to.

A bucket is named by its largest batch size: 1, 2, 4 (3 and 4), 8 (5 to 8), … 1024. Within one,
step times are still compared cell by cell; what is shared is the cost of K relative to K=0.
"""

from __future__ import annotations

from collections.abc import Mapping

from speculative_operator.tuning.cost import StepTime, step_time
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.schedule import Table, joined
from speculative_operator.tuning.window import Window

LARGEST = 1024
ALL = tuple(1 << power for power in range(LARGEST.bit_length()))


def bucket_of(cell: int | None) -> int:
    """The bucket of a cell's upper edge; what lies above all edges belongs to the last."""
    if cell is None:
        return LARGEST
    return min(1 << (cell - 1).bit_length(), LARGEST)


def batch_range(bucket: int) -> tuple[int, int]:
    """Smallest and largest batch size of a bucket."""
    return bucket // 2 + 1, bucket


def traffic(window: Window) -> dict[int, float]:
    """Request-steps by bucket. Engines that do not time steps do not say at which batch either."""
    seen: dict[int, float] = {}
    for key, counts in window.rows.items():
        if not counts.steps:
            continue
        bucket = bucket_of(key.cell)
        seen[bucket] = seen.get(bucket, 0) + counts.requests
    return seen


def step_times(window: Window, bucket: int) -> dict[int | None, list[StepTime]]:
    """Step times of decode-only steps in one bucket, by cell."""
    cells: dict[int | None, list[StepTime]] = {}
    for key, counts in window.rows.items():
        if key.phase is Phase.DECODE and bucket_of(key.cell) == bucket:
            time = step_time(key.k, counts)
            if time is not None:
                cells.setdefault(key.cell, []).append(time)
    return cells


def table_of(lengths: Mapping[int, int], max_num_seqs: int) -> Table:
    """K by batch size from K by bucket. A bucket that nothing came to takes the nearest one's K.

    `lengths` has at least one bucket.
    """
    rows = []
    bucket = 1
    while True:
        low, high = batch_range(bucket)
        last = high >= max_num_seqs
        nearest = min(lengths, key=lambda seen: (_distance(seen, bucket), seen))
        rows.append((low, max_num_seqs if last else high, lengths[nearest]))
        if last:
            return joined(rows)
        bucket *= 2


def _distance(one: int, other: int) -> int:
    """How many buckets lie between two."""
    return abs(one.bit_length() - other.bit_length())
