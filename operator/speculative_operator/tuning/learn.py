"""What a window teaches: state in, state out."""

from __future__ import annotations

from dataclasses import replace

from speculative_operator.api.speculation import BLOCK_DRAFTERS
from speculative_operator.tuning.buckets import batch_range, step_times, traffic
from speculative_operator.tuning.cost import Cost
from speculative_operator.tuning.explain import with_outcomes
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import Bucket, State
from speculative_operator.tuning.window import LEAST_DRAFTS, Window

FADING = 0.9
"""What a bucket's traffic keeps from window to window."""

LONGEST_DRIFT = 50
"""Windows of absence after which a bucket's cost is not held to be less sure still."""


def learned(state: State, window: Window, policy: Policy) -> State:
    """The state after one more window with evidence.

    A window that bridges a restart of the operator is as long as several, and counts as so many, or
    whoever is restarted often would never see the end of a wait.
    """
    windows = state.windows + policy.window.times(window.seconds, window.weight)
    seen = traffic(window)
    buckets = {
        name: _absorbed(name, bucket, window, seen.get(name, 0), windows)
        for name, bucket in state.buckets.items()
    }
    for name, requests in sorted(seen.items()):
        if name not in buckets and requests >= LEAST_DRAFTS:
            new = _new_bucket(name, state, policy, windows)
            buckets[name] = _absorbed(name, new, window, requests, windows)
    return replace(
        state,
        windows=windows,
        buckets=buckets,
        acceptance=state.acceptance.after(window),
        changes=with_outcomes(state.changes, window, windows),
    )


def _absorbed(name: int, bucket: Bucket, window: Window, requests: float, windows: int) -> Bucket:
    """One bucket after the window; its cost is compared cell by cell."""
    faded = bucket.traffic * FADING + requests
    cells = step_times(window, name)
    if not cells:
        return replace(bucket, traffic=faded)
    cost = bucket.cost.widened(min(windows - bucket.seen, LONGEST_DRIFT))
    for times in cells:
        cost = cost.after(times)
    return replace(bucket, cost=cost, traffic=faded, seen=windows)


def _new_bucket(name: int, state: State, policy: Policy, windows: int) -> Bucket:
    """A bucket that traffic comes to for the first time: it starts from the nearest one's cost."""
    nearest = min(
        state.buckets,
        key=lambda other: (abs(other.bit_length() - name.bit_length()), other),
        default=None,
    )
    if nearest is None:
        cost = Cost.prior(policy.choices, block=policy.method in BLOCK_DRAFTERS)
    else:
        cost = state.buckets[nearest].cost.inherited()
    return Bucket(
        length=length_at(state.table, batch_range(name)[1]),
        cost=cost,
        traffic=0.0,
        seen=windows - 1,
        changed=0,
    )
