"""A normal distribution over several unknowns, and how a measurement moves it (Kalman's update).

A measurement is the sum of some unknowns plus noise. Covariances are kept as rows of the lower
triangle: row i has the entries 0 … i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Estimate(NamedTuple):
    """A normal distribution of one unknown."""

    mean: float
    variance: float


Triangle = tuple[tuple[float, ...], ...]


def entry(triangle: Triangle | Sequence[Sequence[float]], i: int, j: int) -> float:
    """The covariance of unknowns i and j."""
    return triangle[i][j] if i >= j else triangle[j][i]


class Belief:
    """Means and covariance in the making, changed in place."""

    __slots__ = ("covariance", "means")

    def __init__(self, means: Sequence[float], covariance: Sequence[Sequence[float]]) -> None:
        self.means = list(means)
        self.covariance = [list(row) for row in covariance]

    def expected(self, touched: Sequence[int]) -> tuple[float, float, list[float]]:
        """Mean and variance of the sum of the touched unknowns, and its covariance with each."""
        columns = [self._column(j) for j in touched]
        weights = [sum(values, 0.0) for values in zip(*columns, strict=True)]
        mean = variance = 0.0
        for i in touched:
            mean += self.means[i]
            variance += weights[i]
        return mean, variance, weights

    def difference(self, i: int | None, j: int | None) -> tuple[float, float, list[float]]:
        """The same of one unknown less another one; None is a zero that is known."""
        none = [0.0] * len(self.means)
        first = none if i is None else self._column(i)
        second = none if j is None else self._column(j)
        weights = [a - b for a, b in zip(first, second, strict=True)]
        mean = variance = 0.0
        if i is not None:
            mean, variance = self.means[i], weights[i]
        if j is not None:
            mean, variance = mean - self.means[j], variance - weights[j]
        return mean, variance, weights

    def _column(self, j: int) -> list[float]:
        """The covariance of one unknown with each."""
        covariance = self.covariance
        return covariance[j] + [row[j] for row in covariance[j + 1 :]]

    def learn(self, weights: Sequence[float], step: float, shrink: float) -> None:
        """Means move by `weights` times `step`, the covariance loses `shrink` times their outer
        product. Kalman's update of a surprise e of variance S has step e/S and shrink 1/S."""
        means, covariance = self.means, self.covariance
        for i, weight in enumerate(weights):
            if weight:
                means[i] += weight * step
                scaled = weight * shrink
                row = zip(covariance[i], weights, strict=False)
                covariance[i] = [value - scaled * other for value, other in row]

    def widen(self, i: int, j: int, variance: float) -> None:
        """More covariance of two unknowns, or more variance of one."""
        if i < j:
            i, j = j, i
        self.covariance[i][j] += variance

    def insert(self, at: int, mean: float, variance: float) -> None:
        """A new unknown at this place, independent of the others."""
        self.means.insert(at, mean)
        for row in self.covariance[at:]:
            row.insert(at, 0.0)
        self.covariance.insert(at, [*([0.0] * at), variance])

    def add(self, variance: float) -> int:
        """A new last unknown of mean 0; its index."""
        self.means.append(0.0)
        self.covariance.append([*([0.0] * len(self.covariance)), variance])
        return len(self.means) - 1

    def drop_last(self) -> None:
        """Forgets the last unknown; what is known of the others stays."""
        self.means.pop()
        self.covariance.pop()
