"""The second level: engines restarted without speculation, and back. Pure.

K=0 in a running engine still costs more than an engine that was started without speculation. After
each window the difference of the two variants is added up, in seconds of the model's goodput,
signed, so that hours in which the one pays are set off against hours in which the other does. Once
the sum exceeds what the way there and the way back cost, and the gain of the moment is worth it,
the variant is changed.

Where K cannot change live, nothing tells how fast engines without speculation are until some have
run. There what is assumed of the drafter's kind takes the place of what would have been measured,
with its doubt; and while they may be faster, one look at them is paid for after waits that double.

Nothing here repeats itself with a cycle of load. A return shows that there may be one. For weeks
after it the next change is dearer, and the sum, which otherwise falls a few prices below zero at
most, takes whole cycles together: it falls as far as it will, and starts as far below zero as the
variant that is left was ahead at a stretch.
Nothing is latched either. Without speculation, it is taken up again by what is remembered (or, with
a sensor, measured) for the load at hand, and after waits that double one look at it is paid for.
"""

from __future__ import annotations

import math
from dataclasses import replace

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning import restart_words as words
from speculative_operator.tuning.balance import Balance, balance, best_live, price_now
from speculative_operator.tuning.explain import main_length
from speculative_operator.tuning.moves import (
    Moved,
    advised,
    back,
    kept_off,
    look,
    look_over,
    obeyed,
    off,
    off_again,
    tried,
    tried_in_vain,
    with_evidence,
    with_outcome,
)
from speculative_operator.tuning.occasion import Running
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Restart, Variant
from speculative_operator.tuning.variant_looks import (
    LEAST_GAIN,
    Grounds,
    look_due,
    look_ended,
    worth_trying,
)
from speculative_operator.tuning.window import Window

DEEPEST = {Variant.SPECULATIVE: 4.0, Variant.AUTOREGRESSIVE: 1.0}
"""Prices that the sum may be below zero, by the variant that runs: for so long the other one has to
make up. The way back is made sooner, since each return makes the next way there dearer."""

CYCLE_SECONDS = 2 * 86400.0
"""After a return the sum fades in so long, instead of having a lowest value: what counts is the
average over a cycle of load. So does what a variant is ahead at a stretch."""

LEAST_STAY = 3.0
"""Prices for which a variant stays."""

PATIENCE_SECONDS = 28 * 86400.0
"""After so long without a change the price shrinks by a step."""

GIVEN_UP, LEAST_GIVEN_UP = 10.0, 1800.0
"""Starts, and at least seconds, after which pods that never came are waited for no longer."""


def restarted(state: State, at: Grounds) -> Moved:
    """The state with the variant that is to run."""
    restart, policy = _known(state.restart, at), at.policy
    state = replace(state, restart=restart)
    if at.window is not None:
        restart = replace(restart, best=best_live(state, at.lengths, policy))
        state = replace(state, restart=restart)
    possible = policy.mode is not TuningMode.OFF and 0 in policy.arms and bool(policy.choices)
    if not possible or (state.away and not policy.restart.wanted):
        return obeyed(state, policy, at.now)
    if restart.startup is None or not policy.restart.replicas:
        return state, (), ()
    if not _settled(state, at.running):
        return _given_up(state, at) if _never_came(state, at) else (state, (), ())
    state = replace(state, restart=replace(state.restart, arrived=True))
    return _without(state, at) if state.away else _speculating(state, at)


def sensing(state: State, policy: Policy) -> bool:
    """Whether one replica is to speculate beside those that do not."""
    beside = state.restart.looking or policy.restart.sensor
    return state.away and beside and policy.restart.replicas > 1


def _known(restart: Restart, at: Grounds) -> Restart:
    """With what the occasion teaches, and a little more patient if it was long quiet."""
    if at.policy.live:
        restart = restart.referring_to(0)
    elif at.window is not None:
        restart = restart.referring_to(main_length(at.window))
    restart = restart.learned(at.window, at.running.window, at.now)
    restart = restart.after_pods(at.running.pods, of=at.policy.restart.replicas)
    looked_at = at.running.window if restart.trying else at.window
    if (restart.looking or restart.trying) and looked_at is not None:
        restart = replace(restart, look_windows=restart.look_windows + 1)
    since = at.now if restart.since is None else restart.since
    patience = restart.patience
    if patience and at.now - since >= PATIENCE_SECONDS:
        since, patience = at.now, patience - 1
    startup = at.running.startup if at.running.startup is not None else restart.startup
    looked = at.now if restart.since is None else restart.looked
    return replace(restart, since=since, patience=patience, startup=startup, looked=looked)


def _settled(state: State, running: Running) -> bool:
    """Whether the wanted variant is what serves."""
    if state.away:
        return running.autoregressive > 0 and running.speculative <= 1
    return running.speculative > 0 and running.autoregressive == 0


def _never_came(state: State, at: Grounds) -> bool:
    """Whether the pods of the other variant, once wanted, were waited for long enough. A revision
    that never was without speculation has no other one."""
    restart = state.restart
    starts = GIVEN_UP * (restart.startup or 0.0) * at.policy.restart.replicas
    waited = at.now - (restart.since or at.now)
    return restart.has_moved and not restart.arrived and waited > max(starts, LEAST_GIVEN_UP)


def _given_up(state: State, at: Grounds) -> Moved:
    """The variant that was left goes on, or comes back: also where the other one took its GPUs and
    nothing serves."""
    if state.away:
        return back(state, at.policy, at.now, words.never_came())
    if at.policy.may_restart:
        return off_again(state, at.policy, at.now)
    return state, (), ()


def _speculating(state: State, at: Grounds) -> Moved:
    """One more window of the engines that speculate is taken into the sum."""
    window, policy, now = at.window, at.policy, at.now
    if window is None:
        return state, (), ()
    found = balance(window, state, policy)
    state = _owing(state, found, window, policy)
    pays = found.telling and found.without > LEAST_GAIN
    if state.restart.looking:
        return _looking_on(state, at, found, pays=pays)
    due = pays and state.restart.owed > price_now(state, policy)
    if due and not at.policy.may_restart:
        return advised(state, found, policy)
    if due and _stayed(state, at):
        return off(state, window, policy, now, words.falls_back(found.without, state, policy))
    if worth_trying(state, at, found):
        return tried(state, window, policy, now)
    told = state.restart.advised and found.without > LEAST_GAIN / 2
    return replace(state, restart=replace(state.restart, advised=told)), (), ()


def _looking_on(state: State, at: Grounds, found: Balance, *, pays: bool) -> Moved:
    """A look at speculation that took the only replica: that one goes back where it finds nothing,
    and else stays as it is."""
    if at.window is not None and at.policy.may_restart and pays and look_ended(state):
        text = words.look_failed(found.without)
        return off(state, at.window, at.policy, at.now, text)
    looking = not look_ended(state)
    return replace(state, restart=replace(state.restart, looking=looking)), (), ()


def _without(state: State, at: Grounds) -> Moved:
    """One more window of the engines that do not is taken into the sum."""
    window, policy = at.running.window, at.policy
    found = None
    if window is not None:
        found = balance(window, state, policy)
        state = with_evidence(state, window, at.now, beside=sensing(state, policy))
        state = _owing(state, found, window, policy)
        if _stayed(state, at):
            state = with_outcome(state, window)
    if not at.policy.may_restart:
        return state, (), ()
    if state.restart.trying:
        return _trying_on(state, at, found)
    pays = found is not None and found.telling and found.speculating > policy.minimum_gain
    if found is not None and pays and _owed_back(state, at):
        return back(state, policy, at.now, words.comes_back(found.speculating, state, policy))
    if state.restart.looking:
        ended = found is not None and look_ended(state)
        return (look_over(state, at.now) if ended else state), (), ()
    if at.ask or look_due(state, at, familiar=found is None or found.telling):
        return look(state, policy, at.now)
    return state, (), ()


def _trying_on(state: State, at: Grounds, found: Balance | None) -> Moved:
    """A look at engines without speculation: they stay where they are faster."""
    if found is None or not look_ended(state):
        return state, (), ()
    if found.telling and found.without > LEAST_GAIN:
        return kept_off(state), (), ()
    return tried_in_vain(state, at.policy, at.now, words.in_vain(found.without))


def _owed_back(state: State, at: Grounds) -> bool:
    """Whether speculation that pays is to be taken up: a look has just measured it, or the sum has
    come to pay for the restart."""
    if state.restart.looking:
        return look_ended(state)
    return state.restart.owed > price_now(state, at.policy) and _stayed(state, at)


def _owing(state: State, found: Balance, window: Window, policy: Policy) -> State:
    """The sum with what the other variant would have brought in a window."""
    restart = state.restart
    gain = (-found.difference if restart.away else found.difference) * found.known * window.seconds
    kept = math.exp(-window.seconds / CYCLE_SECONDS)
    lead = max(restart.lead * kept - gain, 0.0)
    if restart.patience:
        owed = restart.owed * kept + gain
    else:
        owed = max(restart.owed + gain, -DEEPEST[restart.variant] * price_now(state, policy))
    restart = replace(
        restart,
        owed=owed,
        lead=lead,
        most=max(restart.most, lead),
        difference=found.difference if found.telling else None,
    )
    return replace(state, restart=restart)


def _stayed(state: State, at: Grounds) -> bool:
    """Whether the variant has run for long enough to be changed."""
    since = at.now if state.restart.since is None else state.restart.since
    return at.now - since >= LEAST_STAY * price_now(state, at.policy)
