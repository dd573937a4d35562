"""Devices that their plugin calls unhealthy: told while the engine runs, left once it ends."""

from __future__ import annotations

from typing import Any

from speculative_operator.api.conditions import ConditionType, EventReason, Reason
from speculative_operator.controller.said.transitions import off_unhealthy_devices
from speculative_operator.controller.seen.pods import Pod
from tests.unit.controller.test_status import condition, told
from tests.unit.controller.world import World

NODE = {"nodeName": "gpu-node-3"}


def allocated(health: str) -> dict[str, Any]:
    """The engine's container with two devices, of which the first is so."""
    devices = [{"resourceID": "gpu-0", "health": health}, {"resourceID": "gpu-1"}]
    resources = [{"name": "amd.com/gpu", "resources": devices}]
    return {"name": "engine", "restartCount": 0, "allocatedResourcesStatus": resources}


def ended(health: str) -> dict[str, Any]:
    """The same, after its engine has ended by itself."""
    last = {"terminated": {"reason": "Error", "exitCode": 1, "message": "HSA_STATUS_ERROR"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    return {**allocated(health), "restartCount": 1, "state": waiting, "lastState": last}


def serving() -> tuple[World, Pod, Pod]:
    """Two pods that serve, and the world."""
    world = World(replicas=2)
    world.settle()
    one, other = world.seen().pods
    return world, one, other


def not_ready(world: World, pod: Pod, container: dict[str, Any]) -> None:
    """The pod has failed its probes, with its container so."""
    conditions = [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]
    status = {"conditions": conditions, "containerStatuses": [container]}
    world.set_pod(pod.name, spec=NODE, status=status)


def test_an_engine_that_runs_on_one_serves_and_is_named() -> None:
    """It may go on for days; whoever is on call decides when it moves."""
    world, one, _ = serving()
    world.set_pod(one.name, spec=NODE, status={"containerStatuses": [allocated("Unhealthy")]})
    ready = condition(told(world), ConditionType.READY)

    assert (ready.status, ready.reason) == ("True", Reason.SERVING)
    assert f"Pod {one.name} runs on what its device plugin calls unhealthy" in ready.message
    assert "node gpu-node-3: amd.com/gpu gpu-0." in ready.message
    assert world.desired().replaced == ()


def test_once_it_ends_its_pod_goes_since_each_start_would_be_there_again() -> None:
    """Another pod is given a healthy device, or waits and says so."""
    world, one, _ = serving()
    not_ready(world, one, ended("Unhealthy"))
    desired = world.desired()
    ready = condition(told(world), ConditionType.READY)
    (notice,) = off_unhealthy_devices(desired.replaced)

    assert [pod.name for pod in desired.replaced] == [one.name]
    assert desired.found == ()
    assert ready.reason == Reason.DEVICE_FAULT
    assert "Unhealthy on node gpu-node-3: amd.com/gpu gpu-0." in ready.message
    assert notice.reason is EventReason.POD_REPLACED
    assert "amd.com/gpu gpu-0 on node gpu-node-3 is unhealthy" in notice.message


def test_an_engine_that_ends_on_a_healthy_one_stays_with_its_kubelet() -> None:
    """A new pod would load the weights once more for nothing."""
    world, one, _ = serving()
    not_ready(world, one, ended("Healthy"))

    assert world.desired().replaced == ()
    assert condition(told(world), ConditionType.READY).reason != Reason.DEVICE_FAULT
