"""Which K is best for one bucket, by expected goodput E(K) / T(K).

    gain(k) = log E(k) - log E(now) - log [T(k) / T(now)]     log of the goodput's change

K=0 is one of the arms. Speculation has to beat it by the minimum gain, so K=0 is given that much
on top, and a little less while speculation is on, or the two would change places for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from speculative_operator.tuning.acceptance import Estimate
from speculative_operator.tuning.cost import Cost
from speculative_operator.tuning.policy import Policy

HYSTERESIS = 0.008
"""Least gain for a change."""

FALLBACK_SLACK = 0.02
"""How much less than the minimum gain keeps speculation on, once it is."""


class Option(NamedTuple):
    """What K instead of the one in force would bring: log of goodput's change, with the bonus of
    K=0 in `gain`, without it in `plain`. One that was not `measured`, or whose last time
    contradicted it (`doubted`), is looked at, not chosen."""

    k: int
    gain: float
    plain: float
    error: float
    measured: bool
    doubted: bool


def bonus(k: int, now: int, policy: Policy) -> float:
    """What K is given on top of its goodput: the minimum gain for K=0, or none."""
    if k or policy.minimum_gain == 0.0:
        return 0.0
    whole = math.log1p(policy.minimum_gain)
    return max(whole - FALLBACK_SLACK, whole / 2) if now else whole


def options(
    now: int, cost: Cost, lengths: Mapping[int, Estimate], policy: Policy
) -> tuple[Option, ...]:
    """All other K that the policy allows, smallest first; () while no draft was ever seen.

    `lengths` has log E(K), see `Acceptance.lengths`.
    """
    length = lengths.get(now)
    if length is None:
        return ()
    found = []
    for k in policy.arms:
        other = lengths.get(k)
        if k == now or other is None:
            continue
        ratio = cost.between(k, now)
        plain = other.mean - length.mean - ratio.mean
        found.append(
            Option(
                k=k,
                gain=plain + bonus(k, now, policy) - bonus(now, now, policy),
                plain=plain,
                error=math.sqrt(ratio.variance + other.variance + length.variance),
                measured=cost.measured(k, now),
                doubted=k in cost.held or now in cost.held,
            )
        )
    return tuple(found)


def best(found: tuple[Option, ...]) -> Option | None:
    """The known K that is expected to bring most, if that is more than the one in force does."""
    known = [option for option in found if option.measured and not option.doubted]
    most = max(known, key=lambda option: option.gain, default=None)
    return most if most is not None and most.gain > HYSTERESIS else None
