"""Why a pod does not serve: the earliest cause, in words that do not change by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import Reason
from speculative_operator.cluster.cache import trimmed_copy
from speculative_operator.controller.seen.pods import Pod, pod_of


def a_pod(*containers: dict[str, Any], labels: dict[str, str] | None = None, **status: Any) -> Pod:
    """A pod as it is read after it went through the watched copies."""
    metadata = {
        "name": "qwen-0",
        "namespace": "prod",
        "uid": "p1",
        "resourceVersion": "1",
        "labels": labels or {},
    }
    full = {"phase": "Pending", "containerStatuses": list(containers), **status}
    return pod_of(trimmed_copy({"kind": "Pod", "metadata": metadata, "status": full}).manifest())


def engine(**state: Any) -> dict[str, Any]:
    """The status of the engine's container."""
    return {"name": "engine", "ready": False, "restartCount": 0, **state}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """A container that waits."""
    return engine(state={"waiting": {"reason": reason, "message": message}})


CRASHED = {"terminated": {"reason": "Error", "exitCode": 1, "message": "HIP out of memory\n"}}


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        (
            a_pod(
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available: 3 Insufficient amd.com/gpu.",
                    }
                ]
            ),
            Reason.WAITING_FOR_GPUS,
            "0/3 nodes are available: 3 Insufficient amd.com/gpu.",
        ),
        (
            a_pod(waiting("ImagePullBackOff", 'Back-off pulling "x": ErrImagePull: not found')),
            Reason.IMAGE_UNAVAILABLE,
            "container engine: not found",
        ),
        (
            a_pod(waiting("ErrImagePull", "not found")),
            Reason.IMAGE_UNAVAILABLE,
            "container engine: not found",
        ),
        (
            a_pod(
                {
                    **waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container"),
                    "lastState": CRASHED,
                }
            ),
            Reason.CONTAINER_FAILED,
            "container engine ended: Error, exit code 1: HIP out of memory",
        ),
        (
            a_pod(engine(state={"running": {}}, lastState=CRASHED, restartCount=3)),
            Reason.CONTAINER_FAILED,
            "container engine ended: Error, exit code 1: HIP out of memory",
        ),
        (
            a_pod(engine(state={"terminated": {"reason": "Completed", "exitCode": 0}})),
            Reason.CONTAINER_FAILED,
            "container engine ended: Completed, exit code 0",
        ),
        (
            a_pod(waiting("CreateContainerConfigError", 'secret "token" not found')),
            Reason.CONTAINER_FAILED,
            'container engine: CreateContainerConfigError: secret "token" not found',
        ),
        (
            a_pod(phase="Failed", reason="UnexpectedAdmissionError", message="no healthy devices"),
            Reason.CONTAINER_FAILED,
            "UnexpectedAdmissionError: no healthy devices",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Reason) else "",
)
def test_the_cause_is_told_in_its_own_words(pod: Pod, reason: Reason, message: str) -> None:
    """The scheduler's, the kubelet's or the container's; not the seconds of a back-off."""
    assert pod.trouble is not None
    assert (pod.trouble.reason, pod.trouble.message) == (reason, message)


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_a_pod_that_only_comes_up_is_in_no_trouble(reason: str) -> None:
    """Loading weights takes minutes; that is no fault."""
    assert a_pod(waiting(reason)).trouble is None


def test_an_init_container_that_has_ended_well_is_no_trouble() -> None:
    """It has nothing more to do."""
    done = {"terminated": {"reason": "Completed", "exitCode": 0}}
    init = {"name": "live-speculation", "ready": True, "restartCount": 0, "state": done}

    assert a_pod(waiting("PodInitializing"), initContainerStatuses=[init]).trouble is None


def test_an_earlier_container_is_blamed_before_a_later_one() -> None:
    """The engine waits because of it."""
    init = {"name": "live-speculation", "restartCount": 1, "state": CRASHED}
    pod = a_pod(waiting("PodInitializing"), initContainerStatuses=[init])

    assert pod.trouble is not None
    assert pod.trouble.message.startswith("container live-speculation ended")


def test_a_ready_pod_is_in_no_trouble_whatever_it_went_through() -> None:
    """It serves now."""
    ready = [{"type": "Ready", "status": "True"}]

    pod = a_pod(engine(lastState=CRASHED, restartCount=1), conditions=ready, phase="Running")

    assert pod.ready
    assert pod.trouble is None


def test_a_restarted_engine_is_another_incarnation() -> None:
    """It must be asked anew what it serves."""
    once, twice = a_pod(engine(restartCount=0)), a_pod(engine(restartCount=1))

    assert once.incarnation != twice.incarnation


def test_only_a_ready_pod_on_the_service_is_routed_to() -> None:
    """A pod on trial is ready and serves nobody."""
    ready = [{"type": "Ready", "status": "True"}]
    label = "speculation.dev/serving"

    assert a_pod(conditions=ready, labels={label: "true"}).routed
    assert not a_pod(conditions=ready, labels={label: "false"}).routed
    assert not a_pod(labels={label: "true"}).routed


@pytest.mark.parametrize(
    ("lost", "was_ready"), [("2026-01-01T00:00:01Z", False), ("2026-01-01T00:09:00Z", True)]
)
def test_an_engine_that_ended_before_it_was_ready_is_told_from_one_that_served(
    lost: str, *, was_ready: bool
) -> None:
    """The kubelet calls a pod not ready from the start, and again when it has lost readiness."""
    done = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:10Z"}}
    pod = a_pod(
        engine(restartCount=1, state={"running": {}}, lastState=CRASHED),
        conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": lost}],
        initContainerStatuses=[{"name": "plugin", "state": done}],
    )

    assert pod.was_ready is was_ready


@pytest.mark.parametrize(
    ("lost", "was_ready"), [("2026-01-01T00:00:01Z", False), ("2026-01-01T00:09:00Z", True)]
)
def test_without_init_containers_readiness_counts_from_when_the_kubelet_took_the_pod(
    lost: str, *, was_ready: bool
) -> None:
    """As where the plugin is mounted as an image volume. Both times may be of the same second."""
    pod = a_pod(
        engine(restartCount=1, state={"running": {}}, lastState=CRASHED),
        conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": lost}],
        startTime="2026-01-01T00:00:01Z",
    )

    assert pod.was_ready is was_ready
