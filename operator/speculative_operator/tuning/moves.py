"""Carries out what was decided of the two variants: what is wanted, and its record."""

from __future__ import annotations

import math
from dataclasses import replace

from speculative_operator.api.conditions import EventReason
from speculative_operator.tuning import restart_words as words
from speculative_operator.tuning.balance import Balance
from speculative_operator.tuning.explain import evidence, fleet_goodput
from speculative_operator.tuning.learn import LONGEST_DRIFT
from speculative_operator.tuning.looks import LONGEST_WAIT
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import Bucket, State
from speculative_operator.tuning.switch import Changes, remembered
from speculative_operator.tuning.variant import Restart, Variant
from speculative_operator.tuning.verdict import Change, Notice
from speculative_operator.tuning.window import Window

MOST_PATIENCE = 4
"""Times that the price grows."""

MOST_LOOKS = 6
"""Times that the wait for a look doubles."""

Moved = tuple[State, Changes, tuple[Notice, ...]]


def off(state: State, window: Window | None, policy: Policy, now: float, text: str) -> Moved:
    """Engines without speculation are wanted. After a look that has found nothing, the wait for
    the next one doubles. `window` is the last one before, where engines served."""
    failed = state.restart.looking
    restart = _without(state.restart, window, now)
    in_vain = min(restart.in_vain + 1, MOST_LOOKS) if failed else 0
    return _recorded(state, replace(restart, in_vain=in_vain), policy, now, text)


def _without(restart: Restart, window: Window | None, now: float) -> Restart:
    """Engines without speculation, from now on."""
    return replace(
        restart,
        variant=Variant.AUTOREGRESSIVE,
        since=now,
        arrived=False,
        owed=_start(restart),
        lead=0.0,
        most=0.0,
        looking=False,
        looked=now,
        surged=False,
        goodput=fleet_goodput(window) if window is not None else None,
        advised=False,
    )


def tried(state: State, window: Window, policy: Policy, now: float) -> Moved:
    """A look at engines without speculation begins: it takes all replicas, one after the other."""
    restart = replace(_without(state.restart, window, now), trying=True, look_windows=0)
    return _recorded(state, restart, policy, now, words.looks_without_it())


def kept_off(state: State) -> State:
    """The look has found them faster: they stay."""
    return replace(state, restart=replace(state.restart, trying=False, in_vain=0))


def tried_in_vain(state: State, policy: Policy, now: float, text: str) -> Moved:
    """The look has found them slower, or not faster by enough. It was no change of mind, so the
    next change is no dearer, but the wait for the next look doubles."""
    in_vain = min(state.restart.in_vain + 1, MOST_LOOKS)
    restart = _speculative(state, now, state.restart.patience)
    restart = replace(restart, in_vain=in_vain, looked=now)
    return _recorded(tried_anew(state), restart, policy, now, text)


def off_again(state: State, policy: Policy, now: float) -> Moved:
    """Engines with speculation, wanted again, never came: the next change is dearer."""
    patience = min(state.restart.patience + 1, MOST_PATIENCE)
    state = replace(state, restart=replace(state.restart, patience=patience))
    return off(state, None, policy, now, words.never_came_back())


def back(state: State, policy: Policy, now: float, text: str) -> Moved:
    """Speculation is wanted again, and the next change is dearer."""
    patience = min(state.restart.patience + 1, MOST_PATIENCE)
    return _recorded(tried_anew(state), _speculative(state, now, patience), policy, now, text)


def obeyed(state: State, policy: Policy, now: float) -> Moved:
    """The user allows no engines without speculation (any more)."""
    if state.restart.variant is Variant.SPECULATIVE:
        return state, (), ()
    restart = _speculative(state, now, state.restart.patience)
    return _recorded(tried_anew(state), restart, policy, now, words.forbidden())


def look(state: State, policy: Policy, now: float) -> Moved:
    """A look at speculation begins: one replica beside the others, or, where there is only one,
    that one."""
    state = tried_anew(state)
    restart = replace(state.restart, looking=True, look_windows=0)
    if policy.restart.replicas > 1:
        return replace(state, restart=restart), (), ()
    restart = replace(
        restart, variant=Variant.SPECULATIVE, since=now, arrived=False, owed=0.0, goodput=None
    )
    return _recorded(state, restart, policy, now, words.looks_at_speculation())


def look_over(state: State, now: float) -> State:
    """The look at one replica has found nothing."""
    restart = state.restart
    in_vain = min(restart.in_vain + 1, MOST_LOOKS)
    return replace(state, restart=replace(restart, looking=False, in_vain=in_vain, looked=now))


def tried_anew(state: State) -> State:
    """Every K is tried by the engines that come: what is known of them is old."""
    buckets = {name: _outdated(bucket, state.windows) for name, bucket in state.buckets.items()}
    return replace(state, buckets=buckets, look=None, next_look=state.windows, settled=False)


def advised(state: State, found: Balance, policy: Policy) -> Moved:
    """What is not allowed is told once, until it would not be done any more."""
    if state.restart.advised:
        return state, (), ()
    state = replace(state, restart=replace(state.restart, advised=True))
    text = words.would_pay(found.without, state, policy)
    return state, (), (Notice(EventReason.RESTART_WOULD_PAY, text),)


def with_evidence(state: State, window: Window, now: float, *, beside: bool) -> State:
    """What is told of engines without speculation: no acceptance, unless one speculates `beside`
    them."""
    plain = evidence(window, None, now=now)
    last = state.evidence
    if beside and last is not None:
        plain = replace(last, measured_at=now, goodput=plain.goodput, speedup=None)
    return replace(state, evidence=plain)


def with_outcome(state: State, window: Window) -> State:
    """The last restart off speculation with what happened to goodput afterwards, for windows in
    which queues and caches have long settled."""
    before, after = state.restart.goodput, fleet_goodput(window)
    if before is None or after is None:
        return state
    changes = list(state.changes)
    for place, change in enumerate(changes):
        if change.reason is EventReason.FELL_BACK_BY_RESTART:
            changes[place] = replace(change, outcome=words.outcome(before, after))
            break
    restart = replace(state.restart, goodput=None)
    return replace(state, changes=tuple(changes), restart=restart)


def _speculative(state: State, now: float, patience: int) -> Restart:
    return replace(
        state.restart,
        variant=Variant.SPECULATIVE,
        since=now,
        arrived=False,
        owed=_start(replace(state.restart, patience=patience)),
        lead=0.0,
        most=0.0,
        patience=patience,
        looking=False,
        trying=False,
        in_vain=0,
        surged=False,
        goodput=None,
    )


def _outdated(bucket: Bucket, windows: int) -> Bucket:
    """A bucket as if it was not seen for so long that its cost is least sure and any look due."""
    last = windows - math.ceil(LONGEST_WAIT)
    return replace(
        bucket,
        seen=min(bucket.seen, windows - LONGEST_DRIFT),
        timed={k: t._replace(window=min(t.window, last)) for k, t in bucket.timed.items()},
    )


def _start(left: Restart) -> float:
    """Where the sum begins: after a return, below zero by what the variant that is left was ahead
    at the most, since such a stretch will come again."""
    return -left.most if left.patience else 0.0


def _recorded(state: State, restart: Restart, policy: Policy, now: float, text: str) -> Moved:
    """The state with another variant wanted, and a decision over all batch sizes."""
    main = state.busiest if state.busiest is not None else 1
    length = length_at(state.table, main)
    leaves = restart.away
    change = Change(
        at=now,
        window=state.windows,
        low=1,
        high=policy.max_num_seqs,
        before=length if leaves else 0,
        after=0 if leaves else length,
        reason=EventReason.FELL_BACK_BY_RESTART if leaves else EventReason.SPECULATION_RESUMED,
        message=text,
    )
    return remembered(replace(state, restart=restart), (change,)), (change,), ()
