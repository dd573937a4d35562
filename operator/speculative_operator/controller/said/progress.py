"""What stands in the way of a rollout, or how it goes: a closer look at `Progressing`. Pure.

A message tells times of day, never how long something has lasted, or each second would be news.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from speculative_operator.api.conditions import ConditionStatus, ConditionType, Reason
from speculative_operator.api.exposure import RolloutSpec, RolloutStrategy
from speculative_operator.api.status import ModelStatus
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.times import rfc3339, unix
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.plan.facts import STARTUP_SPARE_SECONDS
from speculative_operator.plan.surge import Way
from speculative_operator.tuning.verdict import Verdict

ENDING_SPARE_SECONDS = 30.0
"""After a Terminating pod's grace, before it is said to hang: the kubelet needs some itself."""


@dataclass(frozen=True)
class Moment:
    """One pass.

    now         Unix time
    before      what status said until now
    generation  of the spec
    hindrance   what keeps pods from serving
    """

    now: float
    before: ModelStatus | None
    generation: int
    hindrance: str | None


def look_closer(
    moving: Verdict, spec: RolloutSpec, seen: Observed, desired: Desired, moment: Moment
) -> Verdict:
    """`moving`, or why it moves no further."""
    hindrance = moment.hindrance
    if moving.status is not ConditionStatus.TRUE or desired.way is None:
        return moving
    if desired.way.blocked:
        text = _blocked(spec, desired.way, hindrance)
        return Verdict(ConditionStatus.FALSE, Reason.DOWNTIME_NOT_ALLOWED, text)
    hanging = next(hangs(seen.pods, moment.now), None)
    if _overdue(spec, seen, desired, moment):
        why = hanging or hindrance or _waited_for(desired)
        text = f"Nothing has moved for {_deadline(spec, desired)} s. It goes on trying. {why}"
        return Verdict(ConditionStatus.FALSE, Reason.PROGRESS_DEADLINE_EXCEEDED, text)
    if hanging is not None:
        return Verdict(ConditionStatus.TRUE, Reason.POD_NOT_ENDING, hanging)
    more = _way_told(desired.way, hindrance, moment.now)
    return Verdict(moving.status, moving.reason, f"{moving.message} {more}") if more else moving


def _waited_for(desired: Desired) -> str:
    """What takes so long, where nothing else tells."""
    if desired.probation is not None:
        return desired.probation.ruling.message
    return "An engine loads, see its log."


def hangs(pods: Iterable[Pod], now: float) -> Iterator[str]:
    """Pods that should be gone by now, with their nodes."""
    for pod in pods:
        if pod.to_end is not None and now > pod.to_end + ENDING_SPARE_SECONDS:
            yield (
                f"Pod {pod.name} was to be gone by {rfc3339(pod.to_end)} and still holds its GPUs "
                f"on node {pod.node}: look at that node's kubelet; where the node is gone for "
                "good, delete the pod with --force."
            )


def next_look(
    spec: RolloutSpec, seen: Observed, desired: Desired, now: float, *, moving: bool
) -> float | None:
    """Seconds until time alone changes what is to be done or said; None where it never does."""
    times = [pod.to_end + ENDING_SPARE_SECONDS - now for pod in seen.pods if pod.to_end is not None]
    if desired.way is not None and desired.way.look_in is not None:
        times.append(desired.way.look_in)
    newest = last_move(seen)
    if desired.current is not None and newest is not None and moving:
        times.append(newest + _deadline(spec, desired) - now)
    return min((time + 1 for time in times if time > 0), default=None)


def last_move(seen: Observed, key: str | None = None) -> float | None:
    """The Unix time of the last progress: a pod, of revision `key` or of any, was made, got a node,
    became Ready or was told to end."""
    pods = seen.pods if key is None else seen.pods_of(key)
    return max((pod.moved for pod in pods if pod.moved is not None), default=None)


def _overdue(spec: RolloutSpec, seen: Observed, desired: Desired, moment: Moment) -> bool:
    """Counted from the last progress; what is once overdue is so until something moves again. A
    trial under traffic has a limit of its own, and a parked model waits for no pod."""
    if not any(state.wanted for state in desired.states):
        return False
    if desired.probation is not None and desired.probation.serves:
        return False
    before = moment.before
    conditions = before.conditions if before is not None else ()
    told = next((c for c in conditions if c.type is ConditionType.PROGRESSING), None)
    if told is None or told.observed_generation != moment.generation:
        return False
    newest, changed = last_move(seen) or 0.0, unix(told.last_transition_time)
    if told.reason == Reason.PROGRESS_DEADLINE_EXCEEDED:
        # What was told at the deadline is older by it. So neither whole seconds nor a clock that
        # differs from ours by less hides a move.
        return newest + _deadline(spec, desired) <= changed
    if told.status is not ConditionStatus.TRUE:
        return False
    return moment.now >= max(newest, changed) + _deadline(spec, desired)


def _deadline(spec: RolloutSpec, desired: Desired) -> int:
    if spec.progress_deadline_seconds is not None or desired.current is None:
        return spec.progress_deadline_seconds or 0
    return desired.current.facts.startup_seconds + STARTUP_SPARE_SECONDS


def _blocked(spec: RolloutSpec, way: Way, hindrance: str | None) -> str:
    why, change = _only_in_place(spec, way)
    text = (
        f"Only one pod serves, and {why}: it is not replaced, since nothing would serve meanwhile. "
        f"{change}, or write rollout.allowDowntime: true."
    )
    return _with(hindrance, text)


def _only_in_place(spec: RolloutSpec, way: Way) -> tuple[str, str]:
    """Why there is no pod more that serves meanwhile, and what would change that."""
    if way.limits.surge > 0:
        return "one pod more has found no GPUs", "Free GPUs"
    if spec.strategy is RolloutStrategy.IN_PLACE:
        return "rollout.strategy is InPlace", "Write rollout.strategy: Auto"
    return (
        "one pod more may evict other pods",
        "Set runtime.priorityClassName to a class with preemptionPolicy: Never",
    )


def _way_told(way: Way, hindrance: str | None, now: float) -> str | None:
    if way.in_place is not None:
        return f"In place: {way.in_place}"
    if way.look_in is not None:
        until = rfc3339(now + way.look_in)
        text = f"One pod more waits for GPUs; without any it goes in place at {until}."
        return _with(hindrance, text)
    return None


def _with(hindrance: str | None, text: str) -> str:
    """The scheduler says nothing of a pod that it has not looked at yet."""
    return f"{text} {hindrance}" if hindrance else text
