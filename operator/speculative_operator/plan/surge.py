"""One pod more first, or in place? How a rollout goes on from what is known of GPUs. Pure.

Auto tries one pod more. Where that finds no GPUs, the reason is recorded on the revision before
anything else is done, and from then on the rollout goes in place: an operator that is restarted
finds the record. It is taken away when the rollout is over, so that the next one tries again.

In place may mean that nothing serves for as long as an engine starts. Unless that is allowed, Auto
lets its surge pod wait, since a GPU may come free, and InPlace waits for the user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from speculative_operator.api.exposure import RolloutSpec, RolloutStrategy
from speculative_operator.plan.rollout import Limits, RevisionState, next_scale

ONE_MORE = Limits(surge=1, unavailable=0)

CHOSEN = "rollout.strategy is InPlace."


@dataclass(frozen=True)
class Wait:
    """A surge pod that has no GPUs: for how many seconds, and in whose words."""

    seconds: float
    words: str


@dataclass(frozen=True)
class Counted:
    """Free GPUs were counted; `full` says why one pod more does not fit, None where it does."""

    full: str | None


@dataclass(frozen=True)
class Chance:
    """What is known of a surge pod's chance.

    in_place  why an earlier look at this rollout has given it up; None where none has
    wait      the surge pod that waits for its GPUs, or that a quota refuses
    full      why it cannot fit, where free GPUs were counted
    preempts  why it might take another pod's GPUs away
    """

    in_place: str | None = None
    wait: Wait | None = None
    full: str | None = None
    preempts: str | None = None


@dataclass(frozen=True)
class Way:
    """How a rollout goes on.

    limits    of the next step
    in_place  why it goes in place, where it does so for want of GPUs
    give_up   whether that is news, and to be recorded before the next step
    blocked   whether it can go on only by taking the last pod that serves, which is not allowed
    look_in   seconds until time alone may change the way
    """

    limits: Limits
    in_place: str | None = None
    give_up: bool = False
    blocked: bool = False
    look_in: float | None = None


def in_place(spec: RolloutSpec, *, proven: bool, downtime: bool) -> Limits:
    """One pod at a time until the new revision has served, then as many as may be missing."""
    return Limits(surge=0, unavailable=spec.max_unavailable if proven else 1, downtime=downtime)


def rolling(states: tuple[RevisionState, ...]) -> bool:
    """Whether pods of the last revision are to replace those of others."""
    return states[-1].wanted > 0 and any(s.holding > s.wanted for s in states[:-1])


def surges_next(states: tuple[RevisionState, ...]) -> bool:
    """Whether the next step, as long as one more may be, is the one more."""
    scale = next_scale(states, ONE_MORE)
    if scale is None:
        return False
    others = sum(state.replicas for state in states if state.key != scale.key)
    return others + scale.replicas > sum(state.wanted for state in states)


def way(
    spec: RolloutSpec, states: tuple[RevisionState, ...], chance: Chance, *, downtime: bool
) -> Way:
    """How to go on. `states` end with the revision that is rolled out; `downtime` says whether the
    last pod that serves may go."""
    place = in_place(spec, proven=states[-1].served, downtime=downtime)
    if not rolling(states):
        return Way(place)
    if spec.strategy is RolloutStrategy.SURGE:
        return Way(ONE_MORE)
    if spec.strategy is RolloutStrategy.IN_PLACE:
        return _chosen(states, chance, place)
    if not (place.downtime or leaves_one(states)):
        return Way(place, blocked=True) if chance.preempts else _waited_for(spec, chance)
    if chance.in_place is not None:
        return Way(place, chance.in_place)
    return _tried(spec, chance, place)


def _chosen(states: tuple[RevisionState, ...], chance: Chance, place: Limits) -> Way:
    """In place because the user wants it. What stops all service is recorded first, too."""
    takes_last = _takes_last(states, place)
    give_up = takes_last and place.downtime and chance.in_place is None
    why = CHOSEN if give_up else chance.in_place
    return Way(place, why, give_up=give_up, blocked=takes_last and not place.downtime)


def _tried(spec: RolloutSpec, chance: Chance, place: Limits) -> Way:
    """One pod more, unless it should not be started or has waited long enough."""
    refusal = chance.preempts or chance.full
    if refusal is not None:
        return Way(place, refusal, give_up=True)
    tried = _waited_for(spec, chance)
    if tried.blocked and chance.wait is not None:
        return Way(place, chance.wait.words, give_up=True)
    return tried


def _waited_for(spec: RolloutSpec, chance: Chance) -> Way:
    """One pod more, which may wait: `blocked` once that was longer than the timeout."""
    left = None
    if chance.wait is not None:
        left = spec.surge_timeout_seconds - chance.wait.seconds
    if left is not None and left > 0:
        return Way(ONE_MORE, look_in=left)
    return Way(ONE_MORE, blocked=left is not None)


def leaves_one(states: tuple[RevisionState, ...]) -> bool:
    """Whether a pod serves all the time while others are replaced, or none does anyway."""
    total = sum(state.wanted for state in states)
    serving = sum(state.serving for state in states)
    return total > 1 or serving == 0


def _takes_last(states: tuple[RevisionState, ...], place: Limits) -> bool:
    """Whether the only step in place is to take the last pod that serves."""
    kept, any_pod = replace(place, downtime=False), replace(place, downtime=True)
    return next_scale(states, kept) is None and next_scale(states, any_pod) is not None
