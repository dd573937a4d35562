"""Looks at the other variant: when they are due, and when they are over.

From engines without speculation one is taken at speculation, since at other loads it may pay again.
Where K cannot change live, one is taken at engines without it, since nothing else tells how fast
they are; everywhere else the steps at K=0 tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.balance import Balance, price
from speculative_operator.tuning.occasion import Running
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window

LEAST_GAIN = 0.05
"""A restart is not worth less."""

LOOK_SHARE = 0.02
"""Of the time may go into looks at the other variant, before their waits double."""

LOOK_WINDOWS = 12
"""Windows of the other variant after which a look is judged: trials of every K take eight or so."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What there is to decide by. `window` is that of the engines started with speculation, and
    `lengths` are by bucket; `ask` says that the user wants a look now."""

    policy: Policy
    window: Window | None
    lengths: Mapping[int, Lengths]
    running: Running
    now: float
    ask: bool


def look_ended(state: State) -> bool:
    """Whether the variant that is looked at has shown enough."""
    return state.restart.look_windows >= LOOK_WINDOWS


def worth_trying(state: State, at: Grounds, found: Balance) -> bool:
    """Whether engines without speculation are to be tried: the user wants it, or they may be
    faster and were not tried for long enough."""
    if at.policy.live or not at.policy.may_restart:
        return False
    restart = state.restart
    wait = price(at.policy.restart, restart) / LOOK_SHARE * 2.0**restart.in_vain
    due = at.now - restart.looked >= wait
    return at.ask or (due and found.telling and found.at_most > LEAST_GAIN)


def look_due(state: State, at: Grounds, *, familiar: bool) -> bool:
    """A sensor needs none. Where the load was never seen with speculation, what earlier looks have
    found says nothing, so the wait is that for the first one."""
    restart, limits = state.restart, at.policy.restart
    if limits.sensor and limits.replicas > 1:
        return False
    wait = price(limits, restart) / limits.replicas / LOOK_SHARE
    return at.now - restart.looked >= wait * 2.0 ** (restart.in_vain if familiar else 0)
