"""Per bucket, the K that the objective asks for, as soon as it is known to be another one.

There is no waiting: what one window may say wrongly is weighed where it is learned (outliers are
held out, doubt widens the error), and a K that is hardly known is looked at, not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.explain import change_message
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import best, options
from speculative_operator.tuning.state import State
from speculative_operator.tuning.switch import Changes, Switch, switched
from speculative_operator.tuning.window import Window


def chosen(
    state: State, lengths: Mapping[int, Lengths], window: Window, policy: Policy, now: float
) -> tuple[State, Changes]:
    """The state with what the evidence asks for. `lengths` are by bucket."""
    if policy.hands_off:
        return state, ()
    buckets = dict(state.buckets)
    switches = []
    for name, bucket in sorted(state.buckets.items()):
        if bucket.seen != state.windows:
            continue
        found = best(options(bucket.length, bucket.cost, lengths[name], policy), policy)
        if found is None:
            buckets[name] = replace(bucket, advised=None)
        elif policy.mode is not TuningMode.RECOMMEND or bucket.advised != found.k:
            low, high = batch_range(name)
            message = change_message(
                low, min(high, policy.max_num_seqs), bucket.length, found, policy
            )
            switches.append(Switch(name, found.k, message, math.expm1(found.plain)))
    return switched(replace(state, buckets=buckets), switches, window, policy, now)
