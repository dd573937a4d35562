"""Faults of the draft, from suspicion to recovery: alarms, and giving the draft up meanwhile.

While no fault is told, acceptance that collapses is evidence as any other. Once one is, the choice
waits for no step times, which may be noisy: a draft that brings nothing can only cost.
"""

from __future__ import annotations

from dataclasses import replace

from speculative_operator.api.conditions import EventReason
from speculative_operator.tuning.faults import first_tokens, recovered, weak, weakness
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import Fault, State
from speculative_operator.tuning.verdict import Notice
from speculative_operator.tuning.window import LEAST_DRAFTS, Window

WEAK_WINDOWS = 2
"""Windows with drafts in a row with almost no acceptance that make a fault."""

Notices = tuple[Notice, ...]


def guarded(state: State, window: Window, policy: Policy, now: float) -> tuple[State, Notices]:
    """The state with a fault found or over. A window without drafts says nothing of them."""
    if state.fault is not None:
        if not recovered(window):
            return state, ()
        return replace(state, fault=None, weak=0, look=None, settled=False), (_BACK,)
    if not weak(window, policy.method):
        sound = first_tokens(window)[0] >= LEAST_DRAFTS
        return (replace(state, weak=0) if sound else state), ()
    state = replace(state, weak=state.weak + 1)
    if state.weak < WEAK_WINDOWS:
        return state, ()
    reason, message = weakness(window)
    state = replace(state, fault=Fault(now, message, reason), look=None, settled=False)
    return state, (Notice(EventReason.SPECULATION_FAULTY, message, warning=True),)


def given_up(state: State, policy: Policy) -> bool:
    """Whether no more is to be proposed than the user demands, at every batch size: the draft is
    faulty. Without trials K=0 would never show that it is sound again, so there nothing is moved.
    """
    return state.fault is not None and policy.trial_share > 0.0


_BACK = Notice(EventReason.SPECULATION_RESUMED, "First draft tokens are accepted again.")
