"""Which K is best for one bucket, by measured goodput E(K) / T(K).

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

HYSTERESIS = 0.01
"""Least gain for a change; within it of the best, the smallest K is taken."""

FALLBACK_SLACK = 0.02
"""How much less than the minimum gain keeps speculation on, once it is."""

SURE = 1.3
"""Standard errors by which a gain must differ from zero."""

POSSIBLE = 1.3
"""Standard errors that a K is given the benefit of before it is left out of a look."""


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

    @property
    def open(self) -> bool:
        """Whether it may be better and that is not yet sure: worth a look."""
        if self.doubted:
            return True
        best, worst = self.gain + POSSIBLE * self.error, self.gain - POSSIBLE * self.error
        return best > HYSTERESIS and not (self.measured and worst > HYSTERESIS)


def options(
    now: int, cost: Cost, lengths: Mapping[int, Estimate], policy: Policy
) -> tuple[Option, ...]:
    """All other K that the policy allows, smallest first; () while no draft was ever seen.

    `lengths` has log E(K), see `Acceptance.lengths`.
    """
    length = lengths.get(now)
    if length is None:
        return ()
    bonus = math.log1p(policy.minimum_gain)
    found = []
    for k in policy.arms:
        other = lengths.get(k)
        if k == now or other is None:
            continue
        ratio = cost.between(k, now)
        plain = other.mean - length.mean - ratio.mean
        gain = plain
        if k == 0:
            gain += max(bonus - FALLBACK_SLACK, bonus / 2)
        elif now == 0:
            gain -= bonus
        found.append(
            Option(
                k=k,
                gain=gain,
                plain=plain,
                error=math.sqrt(ratio.variance + other.variance + length.variance),
                measured=cost.measured(k, now),
                doubted=k in cost.held or now in cost.held,
            )
        )
    return tuple(found)


def best(found: tuple[Option, ...]) -> Option | None:
    """The measured K that is surely better than the one in force; None to stay."""
    better = [
        option
        for option in found
        if option.measured
        and not option.doubted
        and option.gain > HYSTERESIS
        and option.gain > SURE * option.error
    ]
    most = max((option.gain for option in better), default=0.0)
    return next((option for option in better if option.gain >= most - HYSTERESIS), None)
