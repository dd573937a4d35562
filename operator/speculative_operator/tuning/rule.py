"""Which K is best for one bucket, by expected goodput E(K) / T(K), and by T(K) where the user asks
for latency.

    gain(k) = log E(k) - log E(now) - log [T(k) / T(now)]     log of the goodput's change

K=0 is one of the arms. Speculation has to beat it by the minimum gain, so K=0 is given that much
on top, and a little less while speculation is on, or the two would change places for ever.

At one batch size the mean time per token of a request is T(K) / E(K), so the K of the highest
goodput has the lowest mean, too. But tokens come as a step ends, E(K) at once: what a reader waits
for is T(K), and so are the tails of the inter-token latency. Objective Latency therefore wants the
shortest step among the K whose goodput is within the allowed loss of the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.cost import Cost, is_measured
from speculative_operator.tuning.policy import Policy

HYSTERESIS = 0.008
"""Least gain for a change."""

FALLBACK_SLACK = 0.02
"""How much less than the minimum gain keeps speculation on, once it is."""

SURELY = 2.0
"""Standard errors by which steps of K=0 have to be longer than those with a faulty draft, or it is
played: they are not, unless the engine makes them so."""


class Option(NamedTuple):
    """What K instead of the one in force would bring: log of goodput's change, with the bonus of
    K=0 in `gain`, without it in `plain`; `step` is the log of the step time's change. One that was
    not `measured`, or whose last time contradicted it (`doubted`), is looked at, not chosen; one
    that is `alone` was timed once and not confirmed."""

    k: int
    gain: float
    plain: float
    step: float
    error: float
    measured: bool
    doubted: bool
    alone: bool = False


def bonus(k: int, now: int, policy: Policy) -> float:
    """What K is given on top of its goodput: the minimum gain for K=0, or none."""
    if k or policy.minimum_gain == 0.0:
        return 0.0
    whole = math.log1p(policy.minimum_gain)
    return max(whole - FALLBACK_SLACK, whole / 2) if now else whole


def options(now: int, cost: Cost, lengths: Lengths, policy: Policy) -> tuple[Option, ...]:
    """All other K that the policy allows, smallest first; () while no draft was ever seen.

    `lengths` has log E(K), see `Acceptance.lengths`.
    """
    length = lengths.get(now)
    if length is None:
        return ()
    found, ratios = [], cost.against(now)
    for k in policy.arms:
        other = lengths.get(k)
        if k == now or other is None:
            continue
        ratio = ratios[k]
        plain = other.mean - length.mean - ratio.mean
        found.append(
            Option(
                k=k,
                gain=plain + bonus(k, now, policy) - bonus(now, now, policy),
                plain=plain,
                step=ratio.mean,
                error=math.sqrt(ratio.variance + other.variance + length.variance),
                measured=is_measured(ratio),
                doubted=k in cost.held or now in cost.held,
                alone=k in cost.alone,
            )
        )
    return tuple(found)


def best(found: Sequence[Option], policy: Policy, *, given_up: bool = False) -> Option | None:
    """The known K that the objective asks for instead of the one in force, or None.

    A draft that is `given_up` is taken to bring nothing: then it is the shortest K that is allowed,
    known or not, unless its steps are surely the longer ones.
    """
    known = [option for option in found if option.measured and not option.doubted]
    if given_up:
        shortest = next((option for option in found if option.k == policy.shortest), None)
        if shortest is None:
            known = [option for option in known if option.step < -SURELY * option.error]
        elif shortest not in known or not _surely_longer(shortest):
            return shortest
    fastest = max(known, key=lambda option: option.gain, default=None)
    if fastest is not None and fastest.gain <= HYSTERESIS:
        fastest = None
    if not policy.throughput_loss or (fastest is not None and not fastest.k):
        return fastest
    most = max([0.0, *(option.plain for option in known)])
    least = most + math.log1p(-policy.throughput_loss)
    within = [option for option in known if option.plain > least + HYSTERESIS]
    if fastest is None or least <= 0.0:
        within = [option for option in within if option.step < -HYSTERESIS]
    return min(within, key=lambda option: option.step, default=None)


def _surely_longer(option: Option) -> bool:
    """Whether more than one look says that steps take longer than those of the K in force."""
    return option.step > SURELY * option.error and not option.alone


def contended(
    goodputs: Sequence[float], steps: Sequence[float], now: int, policy: Policy
) -> list[float]:
    """Log goodputs of all K, moved so far that each K is chosen instead of the one at index `now`
    where it is above that.

    For objective Latency a K of longer steps has to leave the one in force behind by more than the
    allowed loss, and one of shorter steps only has to be within it.
    """
    if not policy.throughput_loss:
        return list(goodputs)
    loss = -math.log1p(-policy.throughput_loss)
    ahead = goodputs[now] - (max(goodputs) - loss)
    return [
        goodput if step == steps[now] else goodput + (ahead if step < steps[now] else -loss)
        for goodput, step in zip(goodputs, steps, strict=True)
    ]
