"""Faults of the draft, from suspicion to recovery. Their one action is K=0, and only once K=0 was
measured to give more."""

from __future__ import annotations

import math
from dataclasses import replace

from speculative_operator.api.conditions import EventReason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.acceptance import window_rows
from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.explain import batches
from speculative_operator.tuning.faults import recovered, weak, weakness
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import Bucket, Fault, State
from speculative_operator.tuning.switch import Changes, Switch, switched
from speculative_operator.tuning.verdict import Notice
from speculative_operator.tuning.window import Window

WEAK_WINDOWS = 2
"""Windows in a row with almost no acceptance that make a fault."""

RATIO_ERROR = 0.2
"""Largest standard error, in logarithms, of T(0)/T(K) with which a fault may act; no prior is as
sure."""

SURE = 2.0
"""Standard errors by which K=0 must be better."""

Notices = tuple[Notice, ...]


def guarded(
    state: State, before: State, window: Window, policy: Policy, now: float
) -> tuple[State, Changes, Notices]:
    """The state with a fault found, acted upon or over. `before` lacks the window."""
    if state.fault is not None and recovered(window):
        return _over(state), (), (_BACK,)
    if not weak(window, policy.method):
        return (state if state.fault else replace(state, weak=0)), (), ()
    saved = before.acceptance if state.weak == 0 else state.saved
    state = replace(state, weak=state.weak + 1, saved=saved)
    notices: Notices = ()
    if state.fault is None and state.weak >= WEAK_WINDOWS:
        reason, message = weakness(window)
        notices = (Notice(EventReason.SPECULATION_FAULTY, message, warning=True),)
        state = replace(
            state, fault=Fault(now, message, reason=reason), look=None, back_off=0,
            next_look=state.windows, settled=False,
        )  # fmt: skip
    if state.fault is None or state.fault.acted or not _better_without(state, window, policy):
        return state, (), notices
    state, changes = _acted(state, window, policy, now)
    return state, changes, notices


_BACK = Notice(EventReason.SPECULATION_RESUMED, "First draft tokens are accepted again.")


def _over(state: State) -> State:
    """A sound draft again: what was known of its acceptance holds again, and a look is due."""
    return replace(
        state,
        fault=None,
        weak=0,
        acceptance=state.saved if state.saved.rows else state.acceptance,
        look=None,
        back_off=0,
        next_look=state.windows,
        settled=False,
    )


def _better_without(state: State, window: Window, policy: Policy) -> bool:
    """Whether K=0 was measured to give more goodput than the K in force, at most traffic."""
    if policy.hands_off or 0 not in policy.arms or state.busiest is None:
        return False
    bucket = state.buckets[state.busiest]
    return bucket.length > 0 and _gain(bucket, window) is not None


def _gain(bucket: Bucket, window: Window) -> float | None:
    """log of goodput's change by K=0, by this window's acceptance; None unless it is surely more.

    What was known of acceptance does not count: it is what has just become wrong.
    """
    row = window_rows(window).get(bucket.length)
    length = math.log1p(row.brought) if row else 0.0
    ratio = bucket.cost.between(bucket.length, 0)
    error = math.sqrt(ratio.variance)
    gain = ratio.mean - length
    return gain if error <= RATIO_ERROR and gain > SURE * error else None


def _acted(state: State, window: Window, policy: Policy, now: float) -> tuple[State, Changes]:
    """K=0 in every bucket."""
    switches = []
    for name, bucket in sorted(state.buckets.items()):
        if bucket.length and bucket.advised != 0:
            gain = _gain(bucket, window)
            share = math.expm1(gain) if gain is not None else 0.0
            words = batches(*batch_range(name))
            message = f"{words}: K {bucket.length} -> 0, the draft is faulty ({share:+.0%})"
            switches.append(Switch(name, 0, message, share))
    state, changes = switched(state, switches, window, policy, now)
    if policy.mode is TuningMode.AUTO and state.fault is not None:
        state = replace(state, fault=replace(state.fault, acted=True), settled=True)
    return state, changes
