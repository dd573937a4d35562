"""Which pod is replaced because its engine is at fault: one at a time, and seldom. Pure.

A fault that comes back at once is in the spec or in the traffic, and no restart mends that: so it
is at most one pod an hour for one reason. A pod that still answers goes only while another serves,
or where downtime is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from speculative_operator.api.conditions import EventReason, Reason
from speculative_operator.tuning.aging import HOUR
from speculative_operator.tuning.standings import Sign
from speculative_operator.tuning.state import Replaced, State
from speculative_operator.tuning.verdict import Notice

ACT_SECONDS = 300.0
"""For so long a pod that is to go is asked to; after that somebody else has to."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One pod. `routed` says that requests reach it: one on trial may be ready and off the Service.
    `started` is its engine's start in Unix time, None while nothing was read of it."""

    uid: str
    ready: bool
    routed: bool
    hangs: bool = False
    started: float | None = None


@dataclass(frozen=True, slots=True)
class Spared:
    """A pod at fault that stays: it answers, no other serves, and downtime is not allowed."""

    uid: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Faulty:
    """An engine at fault, and what of."""

    engine: Engine
    reason: Reason


def replacement(
    engines: Collection[Engine], wanted: int, state: State, now: float, *, downtime: bool = False
) -> Replaced | Spared | None:
    """The pod to be replaced now, or else the one that would be if another served; None while there
    is none, or it is not the time. `wanted` are the replicas that there should be: while some are
    missing or start, none is taken away."""
    if len(engines) < wanted or not all(engine.ready for engine in engines):
        return None
    if any(done.uid in {e.uid for e in engines} and due(done, now) for done in state.replaced):
        return None
    lately = {done.reason for done in state.replaced if now - done.at < HOUR}
    spared: Spared | None = None
    for fault in _faults(engines, state, now):
        if fault.reason in lately:
            continue
        others = [e for e in engines if e is not fault.engine and e.routed and not e.hangs]
        if fault.engine.hangs or others or downtime:
            return Replaced(fault.engine.uid, fault.reason, now)
        spared = spared or Spared(fault.engine.uid, fault.reason)
    return spared


def due(done: Replaced, now: float) -> bool:
    """Whether a pod that was to go should still be made to."""
    return now - done.at < ACT_SECONDS


def remembered(before: tuple[Replaced, ...], done: Replaced) -> tuple[Replaced, ...]:
    """The last one of each reason."""
    return (*(other for other in before if other.reason is not done.reason), done)


def notice(done: Replaced, names: Mapping[str, str]) -> Notice:
    """What is told of it."""
    return Notice(
        EventReason.POD_REPLACED,
        f"Pod {names[done.uid]} is to be replaced: {done.reason}. For this reason no other is "
        "within an hour.",
        warning=True,
    )


def spared_in_words(spared: Spared, names: Mapping[str, str]) -> str:
    """Why it stays, and what would let it go."""
    return (
        f"Pod {names[spared.uid]} is not replaced, since no other pod serves meanwhile: raise "
        "spec.replicas, or write spec.rollout.allowDowntime: true."
    )


def _faults(engines: Collection[Engine], state: State, now: float) -> Iterator[Faulty]:
    """Worst first; of equal ones the engine that has run longest."""
    oldest = sorted(engines, key=lambda engine: now if engine.started is None else engine.started)
    answering = [engine for engine in oldest if not engine.hangs]
    odd = {s.uid for s in state.replicas.odd if s.sign is Sign.SILENCE}
    broken = state.broken
    silent = broken is not None and broken.said and broken.reason is Reason.NO_DRAFTS
    for engine in oldest:
        if engine.hangs:
            yield Faulty(engine, Reason.ENGINE_HANGS)
    for engine in answering:
        if silent or engine.uid in odd:
            yield Faulty(engine, Reason.NO_DRAFTS)
    for engine in answering:
        aged = engine.started is not None and now - engine.started > HOUR
        if state.aging.message and aged:
            yield Faulty(engine, Reason.ACCEPTANCE_DECAYS)
