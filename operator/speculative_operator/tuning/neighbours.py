"""What one batch bucket learns of step costs from the others.

Costs of neighbouring batch sizes are alike, not equal. A ratio of step times that another bucket
knows much better is taken over from it, as sure as it is there and with the doubt of its being
another bucket: never surer, so nothing is counted twice, however often it is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from speculative_operator.tuning.belief import Belief, Estimate, Triangle
from speculative_operator.tuning.cost import Cost, Known, spread
from speculative_operator.tuning.prior import Prior

APART = {"price_error": 0.06, "slope_error": 0.03, "own_error": 0.012}
"""How far costs of two buckets lie apart, in the terms of `Prior`: the price of speculation, each
draft token's part, and each K by itself. Of neighbouring batch sizes of a measured grid the first
two differ by up to 0.2 and 0.1 where an engine begins to be bound by compute, and hardly below."""

Ratios = Mapping[int, Estimate]
"""By K, log of its step time over that of K in force."""

BETTER = 1.2
"""Times by which a variance is smaller that is worth taking over."""


def inherited(cost: Cost, prior: Prior) -> Cost:
    """What a bucket's cost says of one that has compared no two K: a start, not a measurement."""
    first = len(cost.known.cells)
    covariance = tuple(
        tuple(a + b for a, b in zip(known[first:], apart, strict=True))
        for known, apart in zip(cost.known.covariance[first:], _apart(cost, prior), strict=True)
    )
    return Cost(
        cost.lengths,
        Known((), cost.known.means[first:], covariance),
        noise=cost.noise,
        drift=cost.drift,
    )


def informed(cost: Cost, others: Sequence[Cost], now: int, prior: Prior) -> Cost:
    """The cost of a bucket that plays K `now`, with what others know better."""
    if not others:
        return cost
    apart = Cost(cost.lengths, Known((), (0.0,) * len(cost.lengths), _apart(cost, prior)))
    told = _told([other.against(now) for other in others], apart.against(now))
    own = cost.against(now)
    if not any(_surer(there, own[k]) for k, there in told.items() if k != now):
        return cost
    belief, at = Belief(cost.known.means, cost.known.covariance), cost.index(now)
    for k, there in told.items():
        if k == now:
            continue
        mean, variance, weights = belief.difference(cost.index(k), at)
        if _surer(there, Estimate(mean, variance)):
            total = variance + 1.0 / (1.0 / there.variance - 1.0 / variance)
            belief.learn(weights, (there.mean - mean) / total, 1.0 / total)
    rows = tuple(map(tuple, belief.covariance))
    return replace(cost, known=Known(cost.known.cells, tuple(belief.means), rows))


def _apart(cost: Cost, prior: Prior) -> Triangle:
    """Covariance of the difference of log c in two buckets."""
    return spread(cost.lengths, replace(prior, **APART))


def _told(others: Sequence[Ratios], apart: Ratios) -> Ratios:
    """Each ratio from the bucket that knows it best, as far as it holds in another one."""
    best = {k: min((each[k] for each in others), key=lambda one: one.variance) for k in apart}
    return {k: Estimate(mean, variance + apart[k].variance) for k, (mean, variance) in best.items()}


def _surer(there: Estimate, own: Estimate) -> bool:
    return BETTER * there.variance < own.variance
