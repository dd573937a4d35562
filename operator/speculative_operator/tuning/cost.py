"""How long a step takes at each K: one batch bucket's state-space model of log step time.

    log T(K, cell, window) = level(cell) + log c(K) + common(window) + noise

- `level` is log T(0) in a batch cell. It walks from window to window, and `common` is what the
  machine does to a whole window; both have the standard deviation `drift`, which is learned. So two
  K timed in the same window are compared exactly, and two timed in different windows as well as
  the machine is steady.
- `log c(K)`, the cost of K in steps at K=0, has the prior of its drafter's kind and changes slowly.
- `noise` scales the variance that the counters show, and is learned: steps in a row are alike.

What a window moves is in `absorb`, what a bucket learns of others in `neighbours`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from speculative_operator.tuning.belief import Estimate, Triangle, entry
from speculative_operator.tuning.page import Counts
from speculative_operator.tuning.prior import Prior

LEAST_STEPS = 3
STEP_ERROR, BLOCK_ERROR = 0.02, 0.02
"""Least spread of log step times, and the error of a mean that no number of steps removes."""

START_DRIFT = 0.01
"""The machine's drift before it was learned."""

SETTLED = 8
"""Windows after a change until what is known counts as a state of its own, worth coming back to."""

SLOW_SHARE, SLOW, SLOW_ERROR = 0.02, 0.6, 0.4
"""How many times are outliers, and how much longer, as a logarithm."""

CHANGED = 0.4
"""How much less sure a change makes a level. Costs become as much less sure as they were at first.
"""

MEASURED = 0.25
"""A ratio less sure than that is not known."""


UNKNOWN = 0.35
"""A ratio less sure than that is hardly known at all: a few steps tell most of it, and nothing
speaks against their being outliers."""


def is_measured(ratio: Estimate) -> bool:
    """Whether the logarithm of a ratio of step times is known."""
    return ratio.variance <= MEASURED**2


class StepTime(NamedTuple):
    """The mean logarithm of a step's microseconds at one K, and the variance of that mean."""

    k: int
    mean: float
    variance: float


def step_time(k: int, counts: Counts) -> StepTime | None:
    """What the steps of one row say, or None when there are too few.

    Steps in a row are alike, so they count for half as many independent ones.
    """
    if counts.steps < LEAST_STEPS:
        return None
    mean = counts.log_us / counts.steps
    spread = max(counts.log_us_sq / counts.steps - mean**2, STEP_ERROR**2)
    return StepTime(k, mean, 2.0 * spread / counts.steps + BLOCK_ERROR**2)


Cell = int | None


@dataclass(frozen=True, slots=True)
class Known:
    """Levels of `cells`, then log c of each length: means and covariance."""

    cells: tuple[Cell, ...]
    means: tuple[float, ...]
    covariance: Triangle


@dataclass(frozen=True, slots=True)
class Cost:
    """The model's state. `lengths` are ascending and above 0.

    former  what was known before the last change
    age     windows since then
    held    K whose last time was held out
    alone   K whose last time may be an outlier unseen: it tells all that is known, was longer than
            expected, or was the second one too long
    shock   the last surprise of a level, in standard errors
    """

    lengths: tuple[int, ...]
    known: Known
    former: Known | None = None
    held: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()
    noise: float = 1.0
    drift: float = START_DRIFT
    shock: float = 0.0
    age: int = SETTLED

    @classmethod
    def start(cls, lengths: tuple[int, ...], prior: Prior) -> Cost:
        """Before anything was measured."""
        means = tuple(prior.price + math.log(1 + prior.slope * k) for k in lengths)
        return cls(lengths, Known((), means, spread(lengths, prior)))

    def of(self, k: int) -> Estimate:
        """log c(K); c(0) is exactly 1."""
        if k == 0:
            return Estimate(0.0, 0.0)
        index = self._at(k)
        return Estimate(self.known.means[index], self.known.covariance[index][index])

    def least(self, k: int) -> float:
        """The lower of log c(K) now and before the last change."""
        now = self.of(k).mean
        if self.former is None:
            return now
        return min(now, self.former.means[len(self.former.cells) + self.lengths.index(k)])

    def between(self, k: int, other: int) -> Estimate:
        """log of T_step(k) / T_step(other)."""
        (mean, variance), (other_mean, other_variance) = self.of(k), self.of(other)
        shared = self._shared(k, other) if k and other else 0.0
        return Estimate(mean - other_mean, max(variance + other_variance - 2 * shared, 0.0))

    def against(self, now: int) -> dict[int, Estimate]:
        """log of T_step(k) / T_step(now) for each k, K=0 first."""
        means, covariance = self.known.means, self.known.covariance
        if not now:
            start = len(self.known.cells)
            own = {
                k: Estimate(means[i], covariance[i][i]) for i, k in enumerate(self.lengths, start)
            }
            return {0: Estimate(0.0, 0.0)} | own
        at = self._at(now)
        mean, variance = means[at], covariance[at][at]
        found = {0: Estimate(-mean, variance)}
        for i, k in enumerate(self.lengths, len(self.known.cells)):
            row = covariance[i]
            shared = row[at] if at <= i else covariance[at][i]
            found[k] = Estimate(means[i] - mean, max(row[i] + variance - 2 * shared, 0.0))
        return found

    def measured(self, k: int, other: int) -> bool:
        """Whether the ratio of their step times is known."""
        return is_measured(self.between(k, other))

    def joint(self, arms: Sequence[int]) -> list[list[float]]:
        """Covariance of log T of these K in the first cell; (arms, arms)."""
        covariance = self.known.covariance
        index = [self._at(k) if k else -1 for k in arms]
        levels = len(self.known.cells)
        level = covariance[0][0] if levels else 0.0
        with_level = [covariance[i][0] if levels and i >= 0 else 0.0 for i in index]
        return [
            [
                level + of_i + of_j + (entry(covariance, i, j) if i >= 0 and j >= 0 else 0.0)
                for j, of_j in zip(index, with_level, strict=True)
            ]
            for i, of_i in zip(index, with_level, strict=True)
        ]

    def index(self, k: int) -> int | None:
        """Of log c(K) in what is known; None for K=0, where that is 0."""
        return self._at(k) if k else None

    def _at(self, k: int) -> int:
        return len(self.known.cells) + self.lengths.index(k)

    def _shared(self, k: int, other: int) -> float:
        return entry(self.known.covariance, self._at(k), self._at(other))


def spread(lengths: Sequence[int], prior: Prior) -> Triangle:
    """Covariance of log c over drafters of one kind."""
    tilt = [prior.slope_error * k / (1 + prior.slope * k) for k in lengths]
    return tuple(
        tuple(
            prior.price_error**2 + tilt[i] * tilt[j] + (prior.own_error**2 if i == j else 0.0)
            for j in range(i + 1)
        )
        for i in range(len(lengths))
    )
