"""Faults of the draft, from suspicion to recovery: alarms, and what may be looked at meanwhile.

A fault decides nothing. K=0 is chosen where its goodput is higher, by the rule that chooses every
K, and acceptance that collapses is believed at once.
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


_BACK = Notice(EventReason.SPECULATION_RESUMED, "First draft tokens are accepted again.")
