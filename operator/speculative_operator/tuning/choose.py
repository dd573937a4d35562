"""Per bucket, the K of the highest measured goodput: asked for in two windows, then in force."""

from __future__ import annotations

import math
from dataclasses import replace

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.explain import change_message
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import best, options
from speculative_operator.tuning.state import Bucket, State
from speculative_operator.tuning.switch import Changes, Switch, switched
from speculative_operator.tuning.window import Window

PERSISTENCE = 2
"""Windows in a row that must ask for the same K."""

COOLDOWN = 3
"""Windows for which a bucket's K stays after a change."""


def chosen(state: State, window: Window, policy: Policy, now: float) -> tuple[State, Changes]:
    """The state with what this window asks for. Nothing is chosen while acceptance is in doubt."""
    faulty = state.fault is not None and state.fault.acted
    if policy.hands_off or state.acceptance.surprise or faulty:
        return state, ()
    lengths = state.acceptance.lengths((0, *policy.choices))
    buckets = dict(state.buckets)
    switches = []
    for name, bucket in sorted(state.buckets.items()):
        if bucket.seen != state.windows:
            continue
        found = best(options(bucket.length, bucket.cost, lengths, policy))
        wished = buckets[name] = _wished(bucket, found.k if found else None)
        if found is None or wished.wished < PERSISTENCE or not _free(wished, state, policy):
            continue
        low, high = batch_range(name)
        message = change_message(low, min(high, policy.max_num_seqs), bucket.length, found)
        switches.append(Switch(name, found.k, message, math.expm1(found.plain)))
    return switched(replace(state, buckets=buckets), switches, window, policy, now)


def _wished(bucket: Bucket, wish: int | None) -> Bucket:
    """The bucket after one more window that asks for `wish`, or for no change."""
    wished = bucket.wished + 1 if wish == bucket.wish else 1
    steady = wish is None and wished >= PERSISTENCE
    return replace(bucket, wish=wish, wished=wished, advised=None if steady else bucket.advised)


def _free(bucket: Bucket, state: State, policy: Policy) -> bool:
    """Whether the bucket may change now; in mode Recommend, whether this was not yet said."""
    if policy.mode is TuningMode.RECOMMEND:
        return bucket.advised != bucket.wish
    return not bucket.changed or state.windows - bucket.changed >= COOLDOWN
