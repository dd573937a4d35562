"""Per bucket, the K that the objective asks for, as soon as it is known to be another one.

There is no waiting: what one window may say wrongly is weighed where it is learned (outliers are
held out, doubt widens the error), and a K that is hardly known is looked at, not chosen. A draft
that is given up is so in all buckets at once, whether their traffic has come or not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.explain import change_message, given_up_message
from speculative_operator.tuning.guard import given_up
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import Option, best, options
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
    faulty = given_up(state, policy)
    for name, bucket in sorted(state.buckets.items()):
        if bucket.seen != state.windows and not faulty:
            continue
        others = options(bucket.length, bucket.cost, lengths[name], policy)
        found = best(others, policy, given_up=faulty)
        if found is None:
            buckets[name] = replace(bucket, advised=None)
        elif policy.mode is not TuningMode.RECOMMEND or bucket.advised != found.k:
            switches.append(_switch(name, bucket.length, found, policy, faulty=faulty))
    return switched(replace(state, buckets=buckets), switches, window, policy, now)


def _switch(name: int, before: int, found: Option, policy: Policy, *, faulty: bool) -> Switch:
    """The change of one bucket, with its reason in words."""
    low, high = batch_range(name)
    high = min(high, policy.max_num_seqs)
    if faulty and found.k == policy.shortest:
        return Switch(name, found.k, given_up_message(low, high, before, found.k), None)
    message = change_message(low, high, before, found, policy)
    return Switch(name, found.k, message, math.expm1(found.plain))
