"""A pod as the operator sees it, and why it does not serve: the earliest cause, in its own words.

Causes are looked for in the order in which a pod comes up: scheduled, images, initialised, running,
ready. A message never holds a running number such as a back-off's seconds, or each would be news.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from speculative_operator.api.conditions import Reason
from speculative_operator.api.names import (
    ANNOTATION_DELETION_COST,
    ANNOTATION_SCHEDULE,
    LABEL_REVISION,
    LABEL_SERVING,
)
from speculative_operator.controller.seen.causes import Ending
from speculative_operator.controller.seen.scheduling import no_node_because
from speculative_operator.controller.seen.times import unix
from speculative_operator.controller.tuner.ports import Replica
from speculative_operator.plan.overlay import ENGINE

ENDED_PHASES = frozenset({"Failed", "Succeeded"})
PREPARING = frozenset({"ContainerCreating", "PodInitializing"})
IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
    }
)
LONGEST_MESSAGE = 700


@dataclass(frozen=True)
class Trouble:
    """Why something is not ready."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class Pod:
    """What is read of one pod. `incarnation` changes with each restart of its engine."""

    name: str
    namespace: str
    uid: str
    incarnation: str
    revision: str
    address: str
    ready: bool
    terminating: bool
    ended: bool
    serving_label: str | None
    schedule_mark: str | None
    trouble: Trouble | None
    restarts: int = 0
    placed: bool = False
    """Whether it has a node, and so its GPUs."""
    node: str | None = None
    made: float | None = None
    """Unix time."""
    scheduled: float | None = None
    """Unix time at which it got its node; None while it has none."""
    started: float | None = None
    """Unix time at which its engine was started the last time; None while it does not run."""
    ready_since: float | None = None
    """Unix time at which it became ready; None while it is not."""
    was_ready: bool = False
    """Whether its engine has ended after it was ready. Of a pod that never was, the kubelet says
    since before the init containers were done, or since it took the pod, that it is not."""
    to_end: float | None = None
    """The Unix time by which a Terminating pod should be gone: the order to end, and its grace."""
    preempts: bool = False
    """Whether the scheduler may evict ordinary pods for the like of it."""
    ending: Ending | None = None
    """How its engine, or the pod, ended the last time; None while it is ready or never did."""
    starts: int = 0
    """How often its engine was started and ended."""
    deletion_cost: str | None = None
    """Of ready pods a ReplicaSet ends that with the lowest first; 0 where there is none."""
    unhealthy: str | None = None
    """Those of its devices that their plugin calls unhealthy: a pod keeps what it was given."""

    @property
    def alive(self) -> bool:
        """Whether it is, or may become, one of its Deployment's replicas."""
        return not self.terminating and not self.ended

    @property
    def startup(self) -> float | None:
        """Seconds from its node to Ready, if it was never restarted; None while it is not ready. To
        wait for a GPU is no part of it."""
        if self.restarts or self.scheduled is None or self.ready_since is None:
            return None
        return self.ready_since - self.scheduled

    @property
    def replica(self) -> Replica:
        """As the tuner and a trial read its engine."""
        return Replica(self.uid, self.name, self.address, self.ready, self.routed)

    @property
    def moved(self) -> float | None:
        """The Unix time at which it was last made, got a node, became Ready or was to end."""
        times = (self.made, self.scheduled, self.ready_since, self.to_end)
        return max((time for time in times if time is not None), default=None)

    @property
    def routed(self) -> bool:
        """Whether the Service sends it requests."""
        return self.alive and self.ready and self.serving_label == "true"


def pod_of(manifest: Mapping[str, Any]) -> Pod:
    """Reads a watched pod."""
    metadata, status = manifest["metadata"], manifest["status"]
    spec, labels = manifest["spec"], metadata["labels"]
    restarts = sum(int(c.get("restartCount", 0)) for c in status["containerStatuses"])
    ready = _is_true(status, "Ready")
    ending, starts = (None, 0) if ready else _ending_of(status)
    return Pod(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        incarnation=f"{metadata['uid']}/{restarts}",
        revision=labels.get(LABEL_REVISION, ""),
        address=status.get("podIP", ""),
        ready=ready,
        terminating="deletionTimestamp" in metadata,
        ended=status.get("phase") in ENDED_PHASES,
        serving_label=labels.get(LABEL_SERVING),
        schedule_mark=metadata["annotations"].get(ANNOTATION_SCHEDULE),
        trouble=None if ready else _trouble(status),
        restarts=restarts,
        placed=ready or "nodeName" in spec or _is_true(status, "PodScheduled"),
        node=spec.get("nodeName"),
        made=_time(metadata, "creationTimestamp"),
        scheduled=_since(status, "PodScheduled"),
        started=_engine_started(status),
        ready_since=_since(status, "Ready"),
        was_ready=_was_ready(status),
        ending=ending,
        starts=starts,
        to_end=_time(metadata, "deletionTimestamp"),
        deletion_cost=metadata["annotations"].get(ANNOTATION_DELETION_COST),
        unhealthy=_unhealthy_devices(status),
        preempts=spec.get("priority", 0) > 0 and spec.get("preemptionPolicy") != "Never",
    )


def _time(section: Mapping[str, Any], field: str) -> float | None:
    return unix(section[field]) if field in section else None


def _since(status: Mapping[str, Any], kind: str, value: str = "True") -> float | None:
    """Since when a condition has a value."""
    condition = _condition(status, kind)
    time = condition.get("lastTransitionTime")
    if condition.get("status") != value or time is None:
        return None
    return unix(str(time))


def _was_ready(status: Mapping[str, Any]) -> bool:
    lost = _since(status, "Ready", "False")
    begun = max(
        (
            unix(str(ended["finishedAt"]))
            for container in status["initContainerStatuses"]
            if "finishedAt" in (ended := _terminated(container))
        ),
        default=_time(status, "startTime"),
    )
    return lost is not None and begun is not None and lost > begun


def _engine_started(status: Mapping[str, Any]) -> float | None:
    for container in status["containerStatuses"]:
        running = (container.get("state") or {}).get("running") or {}
        if container["name"] == ENGINE and running.get("startedAt"):
            return unix(str(running["startedAt"]))
    return None


def _unhealthy_devices(status: Mapping[str, Any]) -> str | None:
    found = (c.get("unhealthyDevices", ()) for c in status["containerStatuses"])
    return ", ".join(device for devices in found for device in devices) or None


def _trouble(status: Mapping[str, Any]) -> Trouble | None:
    """The earliest cause; None while the pod is only coming up."""
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        words = short(scheduled.get("message", ""))
        return Trouble(no_node_because(words), words)
    if status.get("phase") == "Failed":
        words = ": ".join(status[key] for key in ("reason", "message") if status.get(key))
        return Trouble(Reason.CONTAINER_FAILED, short(words or "the pod failed"))
    found = (_container_trouble(container) for container in _containers(status))
    return next((trouble for trouble in found if trouble is not None), None)


def _ending_of(status: Mapping[str, Any]) -> tuple[Ending | None, int]:
    """How the engine ended the last time, and how often it did; what ended the whole pod first."""
    if status.get("phase") == "Failed" and status.get("reason"):
        return Ending(status["reason"], None, status.get("message", "")), 1
    for container in status["containerStatuses"]:
        ended = _terminated(container)
        if container["name"] == ENGINE and ended:
            now = 1 if (container.get("state") or {}).get("running") is None else 0
            return _as_ending(ended), int(container.get("restartCount", 0)) + now
    return None, 0


def _terminated(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its last end; empty while there was none."""
    state, last = container.get("state") or {}, container.get("lastState") or {}
    ended: Mapping[str, Any] = state.get("terminated") or last.get("terminated") or {}
    return ended


def _as_ending(ended: Mapping[str, Any]) -> Ending:
    message = str(ended.get("message") or "").strip()
    return Ending(ended.get("reason", "Unknown"), ended.get("exitCode"), message)


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status["initContainerStatuses"]
    yield from status["containerStatuses"]


def _container_trouble(container: Mapping[str, Any]) -> Trouble | None:
    name, state = container["name"], container.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in IMAGE_REASONS:
        # The kubelet alternates between two reasons; the longer one wraps the other's message.
        cause = message.split("ErrImagePull: ", 1)[-1] or reason
        return Trouble(Reason.IMAGE_UNAVAILABLE, short(f"container {name}: {cause}"))
    ended = _terminated(container)
    if ended and not (ended.get("exitCode") == 0 and _is_done(container)):
        words = _as_ending(ended).words
        return Trouble(Reason.CONTAINER_FAILED, short(f"container {name} {words}"))
    if reason and reason not in PREPARING:
        return Trouble(Reason.CONTAINER_FAILED, short(f"container {name}: {reason}: {message}"))
    return None


def _is_done(container: Mapping[str, Any]) -> bool:
    """An init container that has ended well; vLLM exits 0 also when its core died."""
    return bool(container.get("ready"))


def _is_true(status: Mapping[str, Any], kind: str) -> bool:
    return bool(_condition(status, kind).get("status") == "True")


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((c for c in status["conditions"] if c["type"] == kind), {})


def short(text: str) -> str:
    """Cut to what a message may hold."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
