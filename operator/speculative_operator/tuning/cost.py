"""What a speculative step costs: c(K) = T_step(K) / T_step(0), for one batch bucket.

A normal distribution over log c(K) of all K together. The prior is the line T ~ a(1 + rK) of the
measured rows with a (the price of switching speculation on) and r wide, so that one K tells of its
neighbours. Step times are compared only within one window and one batch cell: the level there is
free, so drift of the machine, which hits all K alike, teaches nothing. A K that was played alone
teaches nothing either.

Step counts alone do not say how noisy windows are: other processes slow some blocks down and not
others. So the variance of times is scaled by how far they have lain from what was expected.

A time that contradicts what is known is held out; the second of the same K in the same direction
is a change, and is believed. So one outlier on the only look at a K decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from speculative_operator.tuning.acceptance import Estimate
from speculative_operator.tuning.page import Counts

SEQUENTIAL, BLOCK = (1.4, 0.13), (1.6, 0.09)
"""(a, r) of drafters that propose token by token, and of those that propose a block at once."""

PRICE_ERROR, SLOPE_ERROR, OWN_ERROR = 0.35, 0.06, 0.20
"""Standard deviations of log a, of r, and of each K's own distance from the line."""

DRIFT = 0.005
"""How far log c of each K, and of all together, may move from window to window."""

MEASURED = 0.18
"""A ratio less sure than that was not measured; no prior is as sure (OWN_ERROR)."""

LEAST_STEPS = 3
STEP_ERROR, BLOCK_ERROR = 0.02, 0.015
"""Least spread of log step times, and the error of a mean that no number of steps removes."""

STEEPEST, CHANGED = 3.5, 0.3
"""Standard errors from which a time contradicts; how much a believed change widens log c."""

NOISE_RATE, MOST_NOISE = 0.1, 30.0
"""How fast the scale of the times' variance is learned, and its limit."""

FREE = 100.0
"""Variance of the level: as good as infinite for a logarithm of microseconds."""

Matrix = tuple[tuple[float, ...], ...]


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


@dataclass(frozen=True, slots=True)
class Cost:
    """log c(K) for the K in `lengths` (ascending, all above 0): means and covariance.

    `held` has the direction (-1, 1) of a contradicting time that was held out, by K. `noise` is
    how much larger the variance of times is than their steps say, at least 1.
    """

    lengths: tuple[int, ...]
    means: tuple[float, ...]
    covariance: Matrix
    held: Mapping[int, int] = field(default_factory=dict)
    noise: float = 1.0

    @classmethod
    def prior(cls, lengths: tuple[int, ...], *, block: bool) -> Cost:
        """Before anything was measured; `block` for drafters that propose a block at once."""
        price, slope = BLOCK if block else SEQUENTIAL
        tilt = [SLOPE_ERROR * k / (1 + slope * k) for k in lengths]
        covariance = tuple(
            tuple(
                PRICE_ERROR**2 + tilt[i] * tilt[j] + (OWN_ERROR**2 if i == j else 0.0)
                for j in range(len(lengths))
            )
            for i in range(len(lengths))
        )
        return cls(lengths, tuple(math.log(price * (1 + slope * k)) for k in lengths), covariance)

    def of(self, k: int) -> Estimate:
        """log c(K); c(0) is exactly 1."""
        if k == 0:
            return Estimate(0.0, 0.0)
        index = self.lengths.index(k)
        return Estimate(self.means[index], self.covariance[index][index])

    def between(self, k: int, other: int) -> Estimate:
        """log of T_step(k) / T_step(other)."""
        (mean, variance), (other_mean, other_variance) = self.of(k), self.of(other)
        shared = 0.0
        if k and other:
            shared = self.covariance[self.lengths.index(k)][self.lengths.index(other)]
        return Estimate(mean - other_mean, max(variance + other_variance - 2 * shared, 0.0))

    def measured(self, k: int, other: int) -> bool:
        """Whether both were timed under the same traffic, so that the ratio is known."""
        return self.between(k, other).variance <= MEASURED**2

    def widened(self, windows: int) -> Cost:
        """The same belief so many windows later, without evidence in between."""
        return self._wider(windows * DRIFT**2, windows * DRIFT**2)

    def inherited(self) -> Cost:
        """What this bucket's cost says of a neighbouring bucket: a start, not a measurement."""
        return self._wider(PRICE_ERROR**2, OWN_ERROR**2)

    def _wider(self, together: float, each: float) -> Cost:
        covariance = tuple(
            tuple(value + together + (each if i == j else 0.0) for j, value in enumerate(row))
            for i, row in enumerate(self.covariance)
        )
        return replace(self, covariance=covariance)

    def after(self, times: Sequence[StepTime]) -> Cost:
        """What is known after the step times of one window in one cell, surest first.

        The first one fixes the level. Kalman's update, one time after the other.
        """
        known = [
            time._replace(variance=time.variance * self.noise)
            for time in times
            if time.k == 0 or time.k in self.lengths
        ]
        if len(known) < 2:
            return self
        first, *others = sorted(known, key=lambda time: time.variance)
        filtered = _Filter(self)
        filtered.level(first)
        held, noise = dict(self.held), self.noise
        for time in others:
            surprise, own = filtered.surprise(time)
            noise = _learned_noise(noise, surprise, own)
            if abs(surprise) <= STEEPEST:
                held.pop(time.k, None)
            else:
                direction = 1 if surprise > 0 else -1
                if held.get(time.k) != direction:
                    held[time.k] = direction
                    continue
                del held[time.k]
                filtered.widen(time.k)
            filtered.learn(time)
        means, covariance = filtered.belief()
        return Cost(self.lengths, means, covariance, held, noise)


def _learned_noise(noise: float, surprise: float, own: float) -> float:
    """The scale after one more time; in balance when squared surprises are 1 on average. `own` is
    the share of the expected variance that is the time's: doubt about c(K) says nothing of noise.
    """
    grown = noise * (1 + NOISE_RATE * own * (min(surprise**2, STEEPEST**2) - 1))
    return min(max(grown, 1.0), MOST_NOISE)


class _Filter:
    """Means and covariance of (level, log c of each length) while one window is taken in."""

    def __init__(self, cost: Cost) -> None:
        self._lengths = cost.lengths
        self._means = [0.0, *cost.means]
        self._covariance = [
            [FREE, *([0.0] * len(cost.lengths))],
            *([0.0, *row] for row in cost.covariance),
        ]

    def _touched(self, k: int) -> tuple[int, ...]:
        return (0,) if k == 0 else (0, self._lengths.index(k) + 1)

    def level(self, time: StepTime) -> None:
        self._means[0] = time.mean - sum(self._means[i] for i in self._touched(time.k) if i)
        self.learn(time)

    def surprise(self, time: StepTime) -> tuple[float, float]:
        """Distance of a time from what is expected, in standard errors, and the share of that
        error's variance that is the time's own."""
        touched = self._touched(time.k)
        expected = sum(self._means[i] for i in touched)
        variance = sum(self._covariance[i][j] for i in touched for j in touched) + time.variance
        return (time.mean - expected) / math.sqrt(variance), time.variance / variance

    def widen(self, k: int) -> None:
        """Makes one K less sure; K=0 is what all others are compared with, so then all of them."""
        changed = self._touched(k)[1:] or range(1, len(self._means))
        for i in changed:
            for j in changed:
                self._covariance[i][j] += CHANGED**2

    def learn(self, time: StepTime) -> None:
        touched = self._touched(time.k)
        expected = sum(self._means[i] for i in touched)
        weights = [sum(row[i] for i in touched) for row in self._covariance]
        variance = sum(weights[i] for i in touched) + time.variance
        step = (time.mean - expected) / variance
        self._means = [
            mean + weight * step for mean, weight in zip(self._means, weights, strict=True)
        ]
        self._covariance = [
            [value - a * b / variance for value, b in zip(row, weights, strict=True)]
            for row, a in zip(self._covariance, weights, strict=True)
        ]

    def belief(self) -> tuple[tuple[float, ...], Matrix]:
        """Means and covariance of log c, whatever the level."""
        return tuple(self._means[1:]), tuple(tuple(row[1:]) for row in self._covariance[1:])
