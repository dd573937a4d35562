"""What is seen of a surge pod's chance: whether it waits, who refuses it, whom it could evict."""

from __future__ import annotations

from collections.abc import Iterator

from speculative_operator.api.exposure import RolloutSpec, RolloutStrategy
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.waiting import waits_for_gpus
from speculative_operator.plan.rollout import RevisionState
from speculative_operator.plan.surge import Chance, Counted, Wait, leaves_one, rolling, surges_next
from speculative_operator.resources.controller_revision import RecordedRevision

NO_NODE_YET = "The scheduler has not found a node yet."
DEFAULT_PREEMPTS = "A pod of the cluster's default priority class may evict other pods."


def chance(
    revision: RecordedRevision,
    states: tuple[RevisionState, ...],
    seen: Observed,
    *,
    now: float,
    counted: Counted | None,
) -> Chance:
    """What is known of one pod more of `revision`, the last one of `states`.

    It must take no other pod's GPUs. One that fits, as counted, evicts nobody.
    """
    asked, total = sum(s.replicas for s in states), sum(s.wanted for s in states)
    full, preempts = None, None
    if surges_next(states):
        full = counted.full if counted is not None else None
        preempts = _preempts(revision, seen) if counted is None or full is not None else None
    record = seen.revisions.get(revision.key)
    waits = tuple(_waits(revision.key, seen, now)) if asked > total else ()
    return Chance(
        in_place=record.in_place if record is not None else None,
        wait=max(waits, key=lambda wait: wait.seconds, default=None),
        full=full,
        preempts=preempts,
    )


def told_in_place(words: str, states: tuple[RevisionState, ...], seen: Observed) -> str:
    """Why a rollout goes in place, with what that costs where nothing serves meanwhile: as long as
    the quickest of the engines that run took to start."""
    if leaves_one(states):
        return words
    startup = min((p.startup for p in seen.pods if p.startup is not None), default=None)
    if startup is None:
        return f"{words} Nothing serves while the new engine starts; no start was timed yet."
    return (
        f"{words} Nothing serves while the new engine starts: the last start took {startup:.0f} s."
    )


def worth_counting(rollout: RolloutSpec, states: tuple[RevisionState, ...], seen: Observed) -> bool:
    """Whether free GPUs decide something now: a pod waits for them, or one more would."""
    waits = any(waits_for_gpus(pod) for pod in seen.pods)
    auto = rollout.strategy is RolloutStrategy.AUTO
    return waits or (auto and rolling(states) and surges_next(states))


def _waits(key: str, seen: Observed, now: float) -> Iterator[Wait]:
    deployment = seen.deployments.get(key)
    if deployment is not None and deployment.failure is not None:
        since = deployment.failure.since
        yield Wait(now - since if since is not None else 0.0, deployment.failure.message)
    for pod in seen.pods_of(key):
        if pod.alive and not pod.placed:
            words = pod.trouble.message if pod.trouble is not None else NO_NODE_YET
            yield Wait(now - pod.made if pod.made is not None else 0.0, words)


def _preempts(revision: RecordedRevision, seen: Observed) -> str | None:
    """A pod's priority is known once a pod of its class stands. Without a class it has that of the
    cluster's default class, mostly none: until a pod shows another, it evicts nobody."""
    name = revision.template["spec"].get("priorityClassName")
    alike = [pod for pod in seen.pods if _class_of(pod, seen) == name]
    if name is None:
        return DEFAULT_PREEMPTS if any(pod.preempts for pod in alike) else None
    if alike and not any(pod.preempts for pod in alike):
        return None
    return f"A pod of priority class {name} may evict other pods."


def _class_of(pod: Pod, seen: Observed) -> str | None:
    record = seen.revisions.get(pod.revision)
    found = record.recorded.template["spec"] if record is not None else {}
    name: str | None = found.get("priorityClassName")
    return name
