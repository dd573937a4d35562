"""Carries out what was decided for some buckets: new lengths, table and record; or, in mode
Recommend, the record alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from speculative_operator.api.conditions import EventReason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.buckets import batch_range, table_of
from speculative_operator.tuning.explain import goodput
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import Table
from speculative_operator.tuning.state import MOST_CHANGES, Bucket, State
from speculative_operator.tuning.verdict import Change
from speculative_operator.tuning.window import Window

Changes = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """K of one bucket and why; `gain` is the expected change of goodput as a share, None where that
    is not the reason."""

    bucket: int
    length: int
    message: str
    gain: float | None


def switched(
    state: State, switches: Sequence[Switch], window: Window, policy: Policy, now: float
) -> tuple[State, Changes]:
    """The state with these lengths in force, or advised in mode Recommend."""
    if not switches:
        return state, ()
    advised = policy.mode is TuningMode.RECOMMEND
    buckets = dict(state.buckets)
    changes = []
    for switch in switches:
        bucket = buckets[switch.bucket]
        low, high = batch_range(switch.bucket)
        changes.append(
            Change(
                at=now,
                window=state.windows,
                low=low,
                high=min(high, policy.max_num_seqs),
                before=bucket.length,
                after=switch.length,
                reason=_reason(bucket.length, switch.length, advised=advised),
                message=switch.message,
                advised=advised,
                gain=switch.gain,
                goodput=goodput(window, low, high, bucket.length),
            )
        )
        buckets[switch.bucket] = (
            replace(bucket, advised=switch.length)
            if advised
            else _set(bucket, switch.length, state.windows)
        )
    state = replace(state, buckets=buckets)
    if advised:
        return remembered(state, changes), tuple(changes)
    lengths = {name: bucket.length for name, bucket in buckets.items()}
    return played(state, table_of(lengths, policy.max_num_seqs), changes), tuple(changes)


def _set(bucket: Bucket, length: int, windows: int) -> Bucket:
    return replace(bucket, length=length, changed=windows, advised=None)


def _reason(before: int, after: int, *, advised: bool) -> EventReason:
    if advised:
        return EventReason.RECOMMENDED
    if after == 0:
        return EventReason.FELL_BACK
    return EventReason.SPECULATION_RESUMED if before == 0 else EventReason.PROPOSAL_LENGTH_CHANGED


def played(state: State, table: Table, changes: Sequence[Change]) -> State:
    """The state with another table in force; whatever was being tried is asked for anew."""
    return remembered(replace(state, table=table, look=None, settled=False), changes)


def remembered(state: State, changes: Sequence[Change]) -> State:
    """The state with more decisions on record, newest first."""
    return replace(state, changes=(*reversed(changes), *state.changes)[:MOST_CHANGES])
