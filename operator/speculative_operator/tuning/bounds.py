"""The user's bounds of K: obeyed at once and without evidence."""

from __future__ import annotations

from dataclasses import replace

from speculative_operator.api.conditions import EventReason
from speculative_operator.tuning.explain import bounds_message
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import joined
from speculative_operator.tuning.state import State
from speculative_operator.tuning.switch import Changes, played
from speculative_operator.tuning.verdict import Change


def within_bounds(state: State, policy: Policy, now: float) -> tuple[State, Changes]:
    """The state with every K in force moved to the nearest that is allowed; also the first table.

    In mode Off, and where K cannot change live, bounds move nothing.
    """
    if not state.table:
        return replace(state, table=policy.start_table), ()
    if policy.hands_off:
        return state, ()
    table = joined((low, high, policy.nearest_arm(k)) for low, high, k in state.table)
    if table == joined(state.table):
        return state, ()
    changes = tuple(
        Change(
            at=now,
            window=state.windows,
            low=low,
            high=high,
            before=k,
            after=policy.nearest_arm(k),
            reason=EventReason.PROPOSAL_LENGTH_CHANGED,
            message=bounds_message(low, high, k, policy.nearest_arm(k)),
        )
        for low, high, k in state.table
        if k not in policy.arms
    )
    buckets = {
        name: replace(bucket, length=policy.nearest_arm(bucket.length))
        for name, bucket in state.buckets.items()
    }
    return played(replace(state, buckets=buckets), table, changes), changes
