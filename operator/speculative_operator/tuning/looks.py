"""When to look at another K: trials are blocks of steps at another K inside the table.

A look is asked for where it is worth more than it costs, see `worth`. Besides, what was not seen
for n windows may have changed unnoticed. Changes come at a rate h, which is the lower the longer
nothing changed; one that is missed costs G a window from then on. So h · G · n² / 2 is what has
been missed by now on average, and a look is due once that exceeds what the look costs. It never
ends for ever: nothing is latched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from speculative_operator.tuning.acceptance import Acceptance, Lengths
from speculative_operator.tuning.buckets import batch_range, traffic
from speculative_operator.tuning.cost import UNKNOWN
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import Trial
from speculative_operator.tuning.state import Bucket, Look, State
from speculative_operator.tuning.surprise import QUIET
from speculative_operator.tuning.trials import trials
from speculative_operator.tuning.window import Window
from speculative_operator.tuning.worth import Prospect, normal_loss, prospects

RETURN = 25.0
"""Windows after which conditions that have just become worse become again what they were; one more
for each that they stayed."""

PRICE_CHANGE, OWN_CHANGE = 0.4, 0.1
"""How far such a change moves the log goodput of all K > 0 against K=0, and of one K > 0 against
another."""

HIDDEN = 0.7
"""How far a K may seem to be behind, as a logarithm, since its only time was an outlier: most are
twice as long as they should be, give or take the usual error."""

FIRST_LOOK = 6
"""The window by which K=0 is looked at, whatever the prior thinks of it."""

LONGEST_WAIT = 64.0
"""Windows after which any K is looked at again."""

LONGEST_LOOK = 12
"""Windows after which a look is over even if its rounds are not: the load went elsewhere."""

MOST_ARMS = 16
"""K in one trial, as the plugin allows."""

LATELY = 20
"""Windows after which a bucket without traffic is left out."""


def looked(
    state: State,
    lengths: Mapping[int, Lengths],
    window: Window | None,
    policy: Policy,
    asked: str | None,
) -> State:
    """The state with a look ended or begun. `lengths` are by bucket."""
    if policy.hands_off or not policy.trial_share or policy.pinned is not None:
        return replace(state, look=None, asked=asked)
    state = _within(state, policy)
    if asked != state.asked:
        every = {
            name: tuple(k for k in policy.arms if k != bucket.length)[:MOST_ARMS]
            for name, bucket in state.buckets.items()
        }
        return _opened(replace(state, asked=asked), trials(every, policy, steps=_steps(window)))
    if window is None:
        return state
    going_on = _going_on(state, window)
    if going_on and _met(state, window):
        return state
    needs = {
        name: _need(state, bucket, lengths[name], policy)
        for name, bucket in state.buckets.items()
        if state.windows - bucket.seen <= LATELY
    }
    wanted = {name: (need.k,) for name, need in needs.items() if need.k is not None}
    if going_on and not any(state.buckets[name].seen == state.windows for name in wanted):
        return state
    soonest = min((need.left for need in needs.values()), default=LONGEST_WAIT)
    state = replace(
        state,
        settled=state.settled or not any(need.open for need in needs.values()),
        next_look=state.windows + math.ceil(max(soonest, 0.0)),
    )
    short = [name for name, need in needs.items() if need.short]
    return _opened(state, trials(wanted, policy, steps=_steps(window), short=short))


class _Need(NamedTuple):
    """What a bucket has to look at now, if anything; `left` windows until it has to at the latest;
    `open` says that something is worth finding out, `short` that a few steps are enough."""

    k: int | None
    left: float
    open: bool = False
    short: bool = False


def _need(state: State, bucket: Bucket, lengths: Lengths, policy: Policy) -> _Need:
    """What one bucket has to look at."""
    if state.weak and state.fault is None and bucket.length == 0:
        return _Need(_shortest(policy), 0.0)
    found = _candidates(
        state, bucket, prospects(bucket.length, bucket.cost, lengths, policy, _share(state, bucket))
    )
    again = next((each for each in found if _unconfirmed(bucket, each)), None)
    if again is not None:
        return _Need(again.k, 0.0, open=True, short=True)
    best = max(found, key=lambda look: look.net, default=None)
    if best is not None and best.net > 0.0:
        return _Need(best.k, 0.0, open=True, short=_unknown(bucket, best.k))
    former = _former_gain(state, bucket, lengths, policy)
    left = {look.k: windows_left(state, bucket, look, former) for look in found}
    if 0 in left and not state.timed_anywhere(0):
        left[0] = min(left[0], FIRST_LOOK - state.windows)
    late = next((k for k, windows in left.items() if windows <= 0.0), None)
    short = late is not None and _unknown(bucket, late)
    return _Need(late, min(left.values(), default=LONGEST_WAIT), short=short)


def _unconfirmed(bucket: Bucket, look: Prospect) -> bool:
    """Whether the K may be better than the one in force if its only time was an outlier."""
    return look.k in bucket.cost.alone and look.gap > -HIDDEN


def _unknown(bucket: Bucket, k: int) -> bool:
    """Whether so little is known of a K that a few steps tell most of it."""
    return bucket.cost.between(k, bucket.length).variance > UNKNOWN**2


def _share(state: State, bucket: Bucket) -> float:
    """Of the traffic lately."""
    return bucket.traffic / sum(each.traffic for each in state.buckets.values())


def _shortest(policy: Policy) -> int | None:
    """The shortest proposal: whether a draft is sound shows in its first tokens."""
    return next((k for k in policy.arms if k), None)


def _candidates(state: State, bucket: Bucket, found: tuple[Prospect, ...]) -> tuple[Prospect, ...]:
    """What may be looked at, cheapest first. While the draft is faulty only whether K=0 is better,
    and at K=0 whether the smallest K shows a sound draft again."""
    if state.fault is not None:
        found = tuple(look for look in found if (look.k == 0) == (bucket.length > 0))[:1]
    return tuple(sorted(found, key=lambda look: look.cost))


def _going_on(state: State, window: Window) -> bool:
    """Whether the last look is not over yet."""
    if state.look is None or state.look.over or window.trials_over:
        return False
    return state.windows - state.look.opened < LONGEST_LOOK


def _met(state: State, window: Window) -> bool:
    """Whether traffic has come to the batch sizes that the look is about. While it is elsewhere,
    what is needed there must not wait."""
    found = state.look.trials if state.look else ()
    return any(
        trial.batch[0] <= batch_range(name)[1] and batch_range(name)[0] <= trial.batch[1]
        for name in traffic(window)
        for trial in found
    )


def _within(state: State, policy: Policy) -> State:
    """The state without a look that the policy does not allow any more."""
    found = state.look.trials if state.look else ()
    if all(set(t.arms) <= set(policy.arms) and t.share <= policy.trial_share for t in found):
        return state
    return replace(state, look=None)


def windows_left(state: State, bucket: Bucket, look: Prospect, former: float) -> float:
    """Windows until what may have been missed exceeds what the look costs. `former` is the gain of
    the K that was best before the last change, if that is undone."""
    quiet = state.windows - max(bucket.changed, state.shifted)
    change = OWN_CHANGE if bucket.length and look.k else PRICE_CHANGE
    missed = change * normal_loss(look.gap / change) / (QUIET + quiet)
    if not bucket.length:
        missed += max(former, 0.0) / (RETURN + quiet)
    wait = min(math.sqrt(2.0 * look.cost / missed), LONGEST_WAIT) if missed else LONGEST_WAIT
    return last_timed(bucket, look.k) + wait - state.windows


def last_timed(bucket: Bucket, k: int) -> int:
    """The last window that showed K. At K=0 any K > 0 shows whether drafts pay again."""
    if bucket.length:
        return bucket.timed[k].window if k in bucket.timed else 0
    return max((timed.window for other, timed in bucket.timed.items() if other), default=0)


def _former_gain(state: State, bucket: Bucket, lengths: Lengths, policy: Policy) -> float:
    """What speculation would bring over K=0 if all were again as before the last changes, of
    acceptance and of cost. They may have been no changes but mistakes."""
    if bucket.length:
        return 0.0
    former = Acceptance(state.acceptance.former).lengths(policy.choices, policy.prior)
    gains = [
        max(found[k].mean for found in (lengths, former) if k in found) - bucket.cost.least(k)
        for k in policy.arms
        if k and (k in lengths or k in former)
    ]
    return math.expm1(max(gains, default=0.0))


def _steps(window: Window | None) -> float:
    """Steps of one engine in a window; 0 where unknown."""
    if window is None:
        return 0.0
    return sum(counts.steps for counts in window.rows.values()) / window.replicas


def _opened(state: State, wanted: tuple[Trial, ...]) -> State:
    """A look begins; with nothing to try the last one is over."""
    if wanted:
        return replace(state, look=Look(state.windows, wanted), looks=state.looks + 1)
    return replace(state, look=replace(state.look, over=True) if state.look else None)
