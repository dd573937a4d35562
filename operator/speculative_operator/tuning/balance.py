"""What a restart off speculation brings on the traffic of a window, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.buckets import ALL, bucket_of
from speculative_operator.tuning.cost import is_measured
from speculative_operator.tuning.policy import Policy, RestartLimits
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Restart
from speculative_operator.tuning.window import Window

SETTLING_SECONDS = 5.0
"""On top of a start: queues and caches of the new pod are cold."""

SURGE_SHARE = 0.5
"""Of a start's seconds, where a spare GPU is held for them and no goodput goes missing."""

DOWNTIME = 1.25
"""How much heavier a second without any replica weighs: its requests are refused, not slowed."""

WAY_BACK = 0.5
"""How much of the way back is counted on the way there: it may never be gone."""

DEARER = 4.0
"""How much the price grows with each return: a cycle of load that has paid for one there and back
does not do so again, unless its phases are several times as long."""

KNOWN = 0.5
"""Share of the traffic for which both variants must be known for a decision."""

LIKELY = 2.0
"""Standard errors."""


@dataclass(frozen=True, slots=True)
class Balance:
    """`difference` is log of the goodput of engines without speculation over the best of those
    with it, weighted by the traffic of a window; `known` is the share of it that this is about, and
    `error` the standard error of `difference`."""

    difference: float = 0.0
    known: float = 0.0
    error: float = 0.0

    @property
    def without(self) -> float:
        """What leaving speculation would change, as a share of goodput."""
        return math.expm1(self.difference)

    @property
    def speculating(self) -> float:
        """What coming back to it would change, as a share of goodput."""
        return math.expm1(-self.difference)

    @property
    def telling(self) -> bool:
        """Whether enough of the traffic is known."""
        return self.known >= KNOWN

    @property
    def at_most(self) -> float:
        """What leaving speculation may change at the most that is likely, as a share of goodput."""
        return math.expm1(self.difference + LIKELY * self.error)


def balance(window: Window, state: State, policy: Policy) -> Balance:
    """How the two variants compare on the traffic of a window of either of them, by what is
    remembered of its batch sizes."""
    everything = known = difference = error = 0.0
    for key, counts in window.rows.items():
        everything += counts.requests
        best = 0.0 if policy.arms == (0,) else state.restart.best.get(bucket_of(key.cell))
        if best is None or key.cell is None:
            continue
        cost = state.restart.cost(key.cell, policy.prior)
        known += counts.requests
        difference += counts.requests * (cost.mean - best)
        error += counts.requests * math.sqrt(cost.variance)
    return Balance(difference / known, known / everything, error / known) if known else Balance()


def best_live(state: State, lengths: Mapping[int, Lengths], policy: Policy) -> Mapping[int, float]:
    """By bucket of the last window, log of the best live goodput over that of K=0; what was known
    of it before where nothing of drafts is known now, as after a while at K=0.

    Where K cannot change live, it is log E(K) of the K that is played, the same at all batch sizes.
    """
    found = dict(state.restart.best)
    if not policy.live:
        played = state.restart.reference
        length = state.acceptance.lengths((played,), policy.prior).get(played)
        return found if length is None else dict.fromkeys(ALL, length.mean)
    for name, bucket in state.buckets.items():
        if bucket.seen != state.windows:
            continue
        costs = bucket.cost.against(0)
        measured = [
            lengths[name][k].mean - costs[k].mean
            for k in policy.arms
            if k and k in lengths[name] and is_measured(costs[k])
        ]
        if measured:
            found[name] = max(0.0, *measured)
    return found


def price(limits: RestartLimits, restart: Restart) -> float:
    """What a way there and a chance of the way back cost, in seconds of the model's goodput.

    One pod after the other is away for a start, so the whole model for one in all, whatever the
    number of replicas.
    """
    surges = _surges(limits, restart)
    share = SURGE_SHARE if surges else DOWNTIME if limits.replicas == 1 else 1.0
    away = share * (restart.startup or 0.0) + SETTLING_SECONDS
    return (1.0 + WAY_BACK) * (away + disturbed(limits, restart, surges=surges))


def _surges(limits: RestartLimits, restart: Restart) -> bool:
    """Whether one pod more starts first. Where that depends on free GPUs, as it was the last time;
    before there was one, of several replicas the dearer way is expected."""
    if limits.surge is not None:
        return limits.surge
    return limits.replicas == 1 if restart.surged is None else restart.surged


def disturbed(limits: RestartLimits, restart: Restart, *, surges: bool) -> float:
    """What is lost of the requests that run on a pod as it is told to end, in seconds of its
    goodput.

    It has `drain` seconds for them. In place, nothing replaces those that have ended, so that on
    average half of the pod stands idle meanwhile. Those that are still there at the end are cut and
    begin anew; with lengths that are exponentially distributed each has then run for as long as one
    takes on average.
    """
    takes = restart.request
    if takes is None:
        return 0.0
    cut = math.exp(-limits.drain / takes) * takes
    return cut if surges else cut + min(limits.drain, takes) / 2.0


def price_now(state: State, policy: Policy) -> float:
    """The price that has to be exceeded: several times as much for each return lately."""
    restart = state.restart
    return price(policy.restart, restart) * DEARER**restart.patience
