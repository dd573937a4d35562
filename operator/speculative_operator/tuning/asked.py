"""The annotation that asks for a look at once: when it is heard, and why it cannot be obeyed.

It is obeyed once for each value. Where there is nothing yet to look at it waits; where a look is
not possible it is refused, with an Event, and has to be set anew.
"""

from __future__ import annotations

from speculative_operator.api.conditions import EventReason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.restart import sensing
from speculative_operator.tuning.state import State
from speculative_operator.tuning.verdict import Notice
from speculative_operator.tuning.window import Window


def heard(state: State, policy: Policy, asked: str | None, window: Window | None) -> str | None:
    """The value that counts now: the one of before while the new one has to wait. Taking the
    annotation away asks nothing."""
    return state.asked if asked is None or _has_to_wait(state, policy, window) else asked


def _has_to_wait(state: State, policy: Policy, window: Window | None) -> bool:
    """For traffic, for counters that can be believed, or for the end of a restart."""
    if state.broken is not None:
        return True
    if _looks_by_restart(state, policy):
        return not state.restart.arrived or (window is None and not state.away)
    return not state.buckets and not_tried(state, policy) is None


def refused(state: State, policy: Policy) -> tuple[Notice, ...]:
    """What is told where a look that is asked for cannot be taken."""
    why = not_tried(state, policy)
    if why is None or _looks_by_restart(state, policy):
        return ()
    message = f"No look at other K: {why}. It has to be asked for anew once that has changed."
    return (Notice(EventReason.LOOK_REFUSED, message, warning=True),)


def not_tried(state: State, policy: Policy) -> str | None:
    """Why other K are never tried in the engines that run; None where they are."""
    if policy.mode is TuningMode.OFF:
        return "spec.tuning.mode is Off"
    if not policy.live:
        return "K cannot be changed live"
    if state.away and not sensing(state, policy):
        return "the engines run without speculation"
    if policy.pinned is not None:
        return f"spec.tuning.bounds leave K={policy.pinned} only"
    return None if policy.trial_share else "spec.tuning.trialSharePercent is 0"


def _looks_by_restart(state: State, policy: Policy) -> bool:
    """Whether the look is one at the other variant, by a restart."""
    return policy.may_restart and (state.away or not policy.live)
