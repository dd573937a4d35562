"""How step time grows with the batch, from `data/step_cost_by_batch.csv`.

    T(0, B)  = T(0, reference) · g(0, B) / g(0, reference)
    c(K, B)  = c(K, reference) · r(K, B) / r(K, reference),   r(K, B) = g(K, B) / g(0, B)

g is the measured grid (K 0, 1, 3, 5; batch 1 to 256). Between its points it is linear in K and in
log B; beyond its longest K the last slope goes on; beyond its largest batch all steps grow in
proportion.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from local.simulated_engine.table import REFERENCE_BATCH

GRID = Path(__file__).parent / "data" / "step_cost_by_batch.csv"

TAX_AT = ((1, 0.066), (189, 0.216))
"""Measured price of K=0 in a speculative engine over a plain one: (running requests, share)."""


@dataclass(frozen=True)
class Grid:
    """Step times of one model in milliseconds by (K, batch): the same K, 0 among them, at two or
    more batch sizes."""

    milliseconds: Mapping[tuple[int, int], float]

    @cached_property
    def batches(self) -> tuple[int, ...]:
        """The measured batch sizes, ascending."""
        return tuple(sorted({batch for _, batch in self.milliseconds}))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The measured K, ascending, 0 first."""
        return tuple(sorted({k for k, _ in self.milliseconds}))

    def plain(self, batch: int, reference: int) -> float:
        """Autoregressive step time at `batch`, relative to that at `reference`."""
        return self._at(0, batch) / self._at(0, reference)

    def cost(self, length: int, batch: int, reference: int) -> float:
        """c(K, batch) relative to c(K, reference)."""
        return self._ratio(length, batch) / self._ratio(length, reference)

    def _ratio(self, length: int, batch: int) -> float:
        return self._at(length, batch) / self._at(0, batch)

    def _at(self, length: int, batch: int) -> float:
        largest = self.batches[-1]
        if batch > largest:
            return self._at(length, largest) * batch / largest
        right = min(bisect_right(self.batches, batch), len(self.batches) - 1)
        below, above = self.batches[right - 1], self.batches[right]
        upper = min(bisect_right(self.lengths, length), len(self.lengths) - 1)
        low, high = self.lengths[upper - 1], self.lengths[upper]

        def between(size: int) -> float:
            share = (length - low) / (high - low)
            first = self.milliseconds[low, size]
            return first + share * (self.milliseconds[high, size] - first)

        share = math.log(batch / below) / math.log(above / below)
        return between(below) + share * (between(above) - between(below))


@cache
def plain_growth(batch: int) -> float:
    """Autoregressive step time at `batch`, relative to the reference batch."""
    return _grid().plain(batch, REFERENCE_BATCH)


@cache
def cost_growth(length: int, batch: int) -> float:
    """c(K, batch) relative to c(K, reference batch)."""
    return _grid().cost(length, batch, REFERENCE_BATCH)


@cache
def idle_tax(batch: int) -> float:
    """How much longer a step at K=0 is than a plain one, as a share."""
    (low, least), (high, most) = TAX_AT
    share = math.log(max(batch, low) / low) / math.log(high / low)
    return least + min(share, 1.0) * (most - least)


@cache
def _grid() -> Grid:
    with GRID.open(newline="") as lines:
        return Grid(
            {
                (int(row["K"]), int(row["batch"])): float(row["step_ms"])
                for row in csv.DictReader(lines)
            }
        )
