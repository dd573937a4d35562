"""When to look at other K: trials are blocks of steps at another K inside the table.

A look goes over all buckets at once. While its K stay undecided it is taken up again soon; then
the next one waits for 4, 8, 16 and at last always 32 windows, so that nothing is ever latched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import options
from speculative_operator.tuning.schedule import Trial
from speculative_operator.tuning.state import Bucket, Look, State
from speculative_operator.tuning.trials import arms_to_try, opening, trials
from speculative_operator.tuning.window import Window

WAITS = (0, 2, 4, 8, 16, 32)
"""Windows from the end of a look to the next; from the third on where nothing is open."""

SETTLED = 2
"""Index of the first wait after a look that left nothing open."""

LONGEST_LOOK = 12
"""Windows after which a look is over even if its rounds are not: the load went elsewhere."""

LATELY = 20
"""Windows after which a bucket without traffic is left out."""


def looked(
    state: State,
    window: Window | None,
    policy: Policy,
    asked: str | None,
    *,
    fresh: frozenset[int] = frozenset(),
) -> State:
    """The state with a look ended or begun. Traffic came to the `fresh` buckets only now."""
    state = _within(state, policy)
    if policy.hands_off or not policy.trial_share or policy.pinned is not None:
        return replace(state, look=None, asked=asked)
    if state.windows == 0:
        wanted = opening(policy, policy.nearest_arm(policy.initial))
        return state if state.look else _opened(state, wanted, asked)
    if asked != state.asked:
        every = {name: _others(bucket, policy) for name, bucket in state.buckets.items()}
        return _opened(replace(state, back_off=0), _trials(every, window, policy), asked)
    if window is None:
        return state
    playing = _playing(state, window)
    if fresh and not (playing and _covered(state, fresh)):
        state = replace(state, look=None, back_off=0, settled=False, next_look=state.windows)
    elif playing:
        return state
    return _next(state, window, policy)


def _covered(state: State, buckets: frozenset[int]) -> bool:
    """Whether the last look goes over all of these."""
    trials = state.look.trials if state.look else ()
    return all(any(t.batch[0] <= name <= t.batch[1] for t in trials) for name in buckets)


def _playing(state: State, window: Window) -> bool:
    """Whether the last look still goes on."""
    if state.look is None or state.look.over or window.trials_over:
        return False
    return state.windows - state.look.opened < LONGEST_LOOK


def _next(state: State, window: Window, policy: Policy) -> State:
    """Ends the look that is over, and begins the next one if it is due."""
    if state.look is not None and not state.look.over:
        still_open = _arms(state, policy, routine=False)
        state = _closed(state, settled=not any(still_open.values()))
    if state.windows < state.next_look:
        return state
    arms = _arms(state, policy, routine=state.settled)
    return _opened(state, _trials(arms, window, policy), state.asked)


def _within(state: State, policy: Policy) -> State:
    """The state without a look that the policy does not allow any more."""
    trials = state.look.trials if state.look else ()
    if all(set(t.arms) <= set(policy.arms) and t.share <= policy.trial_share for t in trials):
        return state
    return replace(state, look=None, next_look=state.windows)


def _others(bucket: Bucket, policy: Policy) -> tuple[int, ...]:
    return arms_to_try(bucket.length, (), policy, routine=False)


def _arms(state: State, policy: Policy, *, routine: bool) -> dict[int, tuple[int, ...]]:
    """What to try in each bucket that had traffic lately. A faulty draft is only looked at with
    the smallest K from K=0, and against K=0 where it still plays."""
    lengths = state.acceptance.lengths((0, *policy.choices))
    arms = {}
    for name, bucket in state.buckets.items():
        if state.windows - bucket.seen > LATELY:
            continue
        if state.fault is None:
            found = options(bucket.length, bucket.cost, lengths, policy)
            arms[name] = arms_to_try(bucket.length, found, policy, routine=routine)
        elif bucket.length:
            arms[name] = tuple(k for k in policy.arms if k == 0)
        else:
            arms[name] = tuple(k for k in policy.arms if k)[:1] if routine else ()
    return arms


def _trials(
    arms: Mapping[int, tuple[int, ...]], window: Window | None, policy: Policy
) -> tuple[Trial, ...]:
    replicas = window.replicas if window else 1
    steps = sum(counts.steps for counts in window.rows.values()) / replicas if window else 0.0
    return trials(arms, policy, steps=steps, replicas=replicas)


def _opened(state: State, wanted: tuple[Trial, ...], asked: str | None) -> State:
    """A look begins, unless there is nothing to try."""
    state = replace(state, asked=asked)
    if not wanted:
        return _closed(state, settled=True)
    return replace(state, look=Look(state.windows, wanted), looks=state.looks + 1)


def _closed(state: State, *, settled: bool) -> State:
    """A look is over; the next one waits the longer the more there were without a change."""
    back_off = max(state.back_off, SETTLED) if settled else state.back_off
    return replace(
        state,
        look=replace(state.look, over=True) if state.look else None,
        settled=state.settled or settled or back_off >= SETTLED,
        next_look=state.windows + WAITS[back_off],
        back_off=min(back_off + 1, len(WAITS) - 1),
    )
