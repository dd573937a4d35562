"""How step time grows with the batch, from `data/step_cost_by_batch.csv`.

    T(0, B)  = T(0, reference) · g(0, B) / g(0, reference)
    c(K, B)  = c(K, reference) · r(K, B) / r(K, reference),   r(K, B) = g(K, B) / g(0, B)

g is the measured grid (K 0, 1, 3, 5; batch 1 to 256). Between its points it is linear in K and in
log B; beyond K=5 the last slope goes on; beyond its largest batch all steps grow in proportion.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from functools import cache
from pathlib import Path

from local.simulated_engine.table import REFERENCE_BATCH

GRID = Path(__file__).parent / "data" / "step_cost_by_batch.csv"

TAX_AT = ((1, 0.066), (189, 0.216))
"""Measured price of K=0 in a speculative engine over a plain one: (running requests, share)."""


@cache
def plain_growth(batch: int) -> float:
    """Autoregressive step time at `batch`, relative to the reference batch."""
    return _milliseconds(0, batch) / _milliseconds(0, REFERENCE_BATCH)


@cache
def cost_growth(length: int, batch: int) -> float:
    """c(K, batch) relative to c(K, reference batch)."""
    return _ratio(length, batch) / _ratio(length, REFERENCE_BATCH)


@cache
def idle_tax(batch: int) -> float:
    """How much longer a step at K=0 is than a plain one, as a share."""
    (low, least), (high, most) = TAX_AT
    share = math.log(max(batch, low) / low) / math.log(high / low)
    return least + min(share, 1.0) * (most - least)


def _ratio(length: int, batch: int) -> float:
    return _milliseconds(length, batch) / _milliseconds(0, batch)


def _milliseconds(length: int, batch: int) -> float:
    grid = _grid()
    batches = sorted({size for _, size in grid})
    lengths = sorted({k for k, _ in grid})
    if batch > batches[-1]:
        return _milliseconds(length, batches[-1]) * batch / batches[-1]
    right = min(bisect_right(batches, batch), len(batches) - 1)
    below, above = batches[right - 1], batches[right]
    upper = min(bisect_right(lengths, length), len(lengths) - 1)
    low, high = lengths[upper - 1], lengths[upper]

    def between(size: int) -> float:
        share = (length - low) / (high - low)
        return grid[low, size] + share * (grid[high, size] - grid[low, size])

    share = math.log(batch / below) / math.log(above / below)
    return between(below) + share * (between(above) - between(below))


@cache
def _grid() -> dict[tuple[int, int], float]:
    """(K, batch) → step time in milliseconds."""
    with GRID.open(newline="") as lines:
        return {
            (int(row["K"]), int(row["batch"])): float(row["step_ms"])
            for row in csv.DictReader(lines)
        }
