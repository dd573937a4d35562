"""What a restart off speculation brings on the traffic of a window, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from speculative_operator.tuning.acceptance import Estimate
from speculative_operator.tuning.buckets import bucket_of
from speculative_operator.tuning.policy import Policy, RestartLimits
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window

SETTLING_SECONDS = 5.0
"""On top of a start: requests end on the old pod, queues and caches of the new one are cold."""

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


@dataclass(frozen=True, slots=True)
class Balance:
    """`difference` is log of the goodput of engines without speculation over that of live tuning's
    best, weighted by the traffic of a window; `known` is the share of it that this is about."""

    difference: float = 0.0
    known: float = 0.0

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


def balance(window: Window, state: State, policy: Policy) -> Balance:
    """How the two variants compare on the traffic of a window of either of them, by what is
    remembered of its batch sizes."""
    everything = known = difference = 0.0
    for key, counts in window.rows.items():
        everything += counts.requests
        best = 0.0 if policy.arms == (0,) else state.restart.best.get(bucket_of(key.cell))
        if best is None or key.cell is None:
            continue
        known += counts.requests
        difference += counts.requests * (state.restart.tax(key.cell).mean - best)
    return Balance(difference / known, known / everything) if known else Balance()


def best_live(state: State, lengths: Mapping[int, Estimate], policy: Policy) -> Mapping[int, float]:
    """By bucket of the last window, log of the best live goodput over that of K=0; what was known
    of it before where nothing of drafts is known now, as after a while at K=0."""
    found = dict(state.restart.best)
    for name, bucket in state.buckets.items():
        measured = [
            lengths[k].mean - bucket.cost.of(k).mean
            for k in policy.arms
            if k and k in lengths and bucket.cost.measured(k, 0)
        ]
        if measured and bucket.seen == state.windows:
            found[name] = max(0.0, *measured)
    return found


def price(limits: RestartLimits, startup: float) -> float:
    """What a way there and a chance of the way back cost, in seconds of the model's goodput.

    One pod after the other is away for a start, so the whole model for one in all, whatever the
    number of replicas.
    """
    share = SURGE_SHARE if limits.surge else DOWNTIME if limits.replicas == 1 else 1.0
    return (1.0 + WAY_BACK) * (share * startup + SETTLING_SECONDS)


def price_now(state: State, policy: Policy) -> float:
    """The price that has to be exceeded: several times as much for each return lately."""
    restart = state.restart
    return price(policy.restart, restart.startup or 0.0) * DEARER**restart.patience
