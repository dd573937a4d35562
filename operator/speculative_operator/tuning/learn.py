"""What a window teaches: state in, state out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from speculative_operator.tuning.absorb import absorbed
from speculative_operator.tuning.buckets import batch_range, step_times, traffic
from speculative_operator.tuning.cost import Cost
from speculative_operator.tuning.explain import with_outcomes
from speculative_operator.tuning.neighbours import informed, inherited
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import Bucket, State, Timed
from speculative_operator.tuning.window import LEAST_DRAFTS, Window

FADING = 0.9
"""What a bucket's traffic keeps from window to window."""

LONGEST_DRIFT = 50
"""Windows of absence after which a bucket's cost is not held to be less sure still."""


def learned(state: State, window: Window, policy: Policy, now: float) -> State:
    """The state after one more window with evidence.

    A window that bridges a restart of the operator is as long as several, and counts as so many, or
    whoever is restarted often would never see the end of a wait.
    """
    windows = state.windows + policy.window.times(window.seconds, window.weight)
    seen = traffic(window)
    buckets = dict(state.buckets)
    timed = Timed(windows, round(now))
    for name, requests in sorted(seen.items()):
        if name not in buckets and requests >= LEAST_DRAFTS:
            buckets[name] = _new_bucket(name, state, policy, windows)
    for name, bucket in buckets.items():
        told = (
            replace(bucket, cost=_informed(name, bucket, buckets, policy))
            if name in seen
            else bucket
        )
        after = _absorbed(name, told, window, policy, timed)
        buckets[name] = replace(after, traffic=bucket.traffic * FADING + seen.get(name, 0))
    for name, bucket in buckets.items():
        if len(bucket.timed) < 2:
            cost = _neighbour(name, buckets, policy)
            if cost is not None:
                start = replace(bucket, cost=cost)
                buckets[name] = _absorbed(name, start, window, policy, timed)
    acceptance = state.acceptance.after(window, policy.prior)
    shifted = state.acceptance.rows and acceptance.former is not state.acceptance.former
    return replace(
        state,
        windows=windows,
        buckets=buckets,
        acceptance=acceptance,
        shifted=windows if shifted else state.shifted,
        changes=with_outcomes(state.changes, window, windows),
    )


def _absorbed(name: int, bucket: Bucket, window: Window, policy: Policy, now: Timed) -> Bucket:
    """One bucket after the window."""
    cells = step_times(window, name)
    if not cells:
        return bucket
    passed = max(min(now.window - bucket.seen, LONGEST_DRIFT), 1)
    timed = {time.k: now for times in cells.values() for time in times}
    unseen = {k: now.window - last.window for k, last in bucket.timed.items()}
    return replace(
        bucket,
        cost=absorbed(bucket.cost, cells, policy.prior, passed, unseen),
        seen=now.window,
        timed={**bucket.timed, **timed},
    )


def _informed(name: int, bucket: Bucket, buckets: Mapping[int, Bucket], policy: Policy) -> Cost:
    """The bucket's cost with what others know of it, those that were seen since its own last
    change: what they knew before may be over for them, too."""
    if len(bucket.timed) < 2:
        return bucket.cost
    changed = bucket.seen - bucket.cost.age if bucket.cost.former is not None else -math.inf
    others = [
        other.cost
        for at, other in buckets.items()
        if at != name and len(other.timed) > 1 and other.seen > changed
    ]
    return informed(bucket.cost, others, bucket.length, policy.prior)


def _neighbour(name: int, buckets: Mapping[int, Bucket], policy: Policy) -> Cost | None:
    """What the nearest bucket that has compared two K says of this one, which has not."""
    compared = {
        other: bucket.cost
        for other, bucket in buckets.items()
        if other != name and len(bucket.timed) > 1
    }
    if not compared:
        return None
    nearest = min(compared, key=lambda other: (abs(other.bit_length() - name.bit_length()), other))
    return inherited(compared[nearest], policy.prior)


def _new_bucket(name: int, state: State, policy: Policy, windows: int) -> Bucket:
    """A bucket that traffic comes to for the first time."""
    return Bucket(
        length=length_at(state.table, batch_range(name)[1]),
        cost=Cost.start(policy.choices, policy.prior),
        traffic=0.0,
        seen=windows - 1,
        changed=0,
    )
