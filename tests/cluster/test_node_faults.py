"""Nodes that are lost or tainted, and pods that do not end: what the operator says and does.

The scheduler, the taints' eviction and the node's lifecycle are Kubernetes' own; the nodes have no
kubelet, so what is to end there hangs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from local.access import ClusterAccess
from speculative_operator.api.names import LABEL_REVISION
from tests.support.api import KubernetesApi, Manifest, condition, until
from tests.support.idle_nodes import IdleNodes, on_idle_nodes, pods_of
from tests.support.nodeless import MODEL, Engine, Place, engine, make_ready
from tests.support.operator_process import OperatorProcess

LONGER = {"model": {"source": "hf://Qwen/Qwen3-8B", "maxModelLen": 4096}}
DCM = {"key": "amd-dcm", "value": "up", "effect": "NoExecute"}
"""AMD's GPU operator sets it before it partitions the GPUs of a node anew."""

UNHEALTHY = {"key": "amd-gpu-unhealthy", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def nodes(cluster: ClusterAccess, api: KubernetesApi) -> Iterator[IdleNodes]:
    """A cluster of somebody else's gets no nodes of ours."""
    if not cluster.is_local:
        pytest.skip("only the local cluster is given nodes that do nothing")
    with IdleNodes(api).alive() as made:
        yield made


@dataclass
class Scene:
    """A model on idle nodes of its own, with one engine that stands in for all pods."""

    place: Place
    engine: Engine
    nodes: list[str]

    def pods(self) -> list[Manifest]:
        """All of them, those that are ending included."""
        uid = self.place.read()["metadata"]["uid"]
        return pods_of(self.place.api, self.place.namespace, uid)

    def ending(self) -> list[Manifest]:
        """Pods that were told to end and are still there."""
        return [pod for pod in self.pods() if "deletionTimestamp" in pod["metadata"]]

    def hasten(self, grace: int) -> None:
        """The only pod that is ending is given no more seconds than this."""
        (pod,) = self.ending()
        self.place.api.delete("Pod", self.place.namespace, pod["metadata"]["name"], grace=grace)

    def node_of(self, pod: Manifest) -> str:
        """Where the scheduler put it; "" while it waits."""
        return str(pod["spec"].get("nodeName", ""))

    def serve(self, wanted: int) -> None:
        """Makes pods Ready as they come onto nodes, until so many serve."""

        def step() -> bool:
            for pod in self.place.alive():
                if self.node_of(pod) and not _is_ready(pod):
                    make_ready(self.place.api, pod, self.engine.address)
            found = self.place.read()
            status = found.get("status", {})
            settled = status.get("observedGeneration") == found["metadata"]["generation"]
            return settled and condition(found, "Ready").get("status") == "True"

        until(f"{wanted} pods serve", step)

    def events(self, reason: str) -> list[str]:
        """What the Events of one reason on the model say."""
        return [
            str(event["message"])
            for event in self.place.api.all("Event", self.place.namespace)
            if event["involvedObject"]["name"] == self.place.name and event["reason"] == reason
        ]


def _is_ready(pod: Manifest) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _scene(
    nodes: IdleNodes, operator: OperatorProcess, name: str, gpus: list[int], running: Engine
) -> Scene:
    made = [nodes.add(name, count) for count in gpus]
    return Scene(Place(nodes.api, operator.namespace, name), running, made)


@pytest.fixture(scope="module")
def lost(nodes: IdleNodes, operator: OperatorProcess) -> Iterator[Scene]:
    """Two replicas on two nodes, of which one is lost: to be told takes half a minute."""
    with engine("lost") as running:
        scene = _scene(nodes, operator, "lost", [1, 1], running)
        scene.place.create(replicas=2, **on_idle_nodes("lost"))
        scene.serve(2)
        nodes.lose(scene.nodes[0])
        until("its pod is told to end", scene.ending)
        scene.hasten(1)
        yield scene
    nodes.api.delete(MODEL, scene.place.namespace, scene.place.name)


@pytest.fixture(scope="module")
def rolled(nodes: IdleNodes, operator: OperatorProcess) -> Iterator[Scene]:
    """Two replicas that are rolled out in place, of which the first one to go does not end."""
    with engine("rolled") as running:
        scene = _scene(nodes, operator, "rolled", [2], running)
        rollout = {"strategy": "InPlace", "progressDeadlineSeconds": 30}
        scene.place.create(replicas=2, rollout=rollout, **on_idle_nodes("rolled"))
        scene.serve(2)
        scene.place.edit(**LONGER)
        until("a pod is told to end", scene.ending)
        scene.hasten(1)
        yield scene
    nodes.api.delete(MODEL, scene.place.namespace, scene.place.name)


def test_a_taint_of_the_gpu_operator_moves_pods_and_is_told_where_it_cannot(
    nodes: IdleNodes, operator: OperatorProcess, lost: Scene, rolled: Scene
) -> None:
    """NoExecute ends what runs, NoSchedule only keeps new pods off. The two scenes of the other
    tests wait meanwhile."""
    del lost, rolled
    with engine("tainted") as running:
        scene = _scene(nodes, operator, "tainted", [2], running)
        (node,) = scene.nodes
        scene.place.create(**on_idle_nodes("tainted"))
        scene.serve(1)
        (first,) = scene.pods()

        nodes.taint(node, UNHEALTHY)
        scene.place.edit(replicas=2)
        keeps_off = scene.place.wait("Ready", "False", "Unschedulable")
        still = [pod["metadata"]["uid"] for pod in scene.pods() if scene.node_of(pod)]
        scene.place.edit(replicas=1)
        scene.place.wait("Ready", "True")

        nodes.taint(node, DCM)
        until("its pod is told to end", scene.ending)
        waits = scene.place.wait("Ready", "False", "Unschedulable")
        scene.hasten(0)
        nodes.taint(node)
        scene.serve(1)

    assert "untolerated taint" in keeps_off["message"]
    assert still == [first["metadata"]["uid"]]
    assert "untolerated taint" in waits["message"]
    assert [pod["metadata"]["uid"] for pod in scene.pods()] != [first["metadata"]["uid"]]
    nodes.api.delete(MODEL, scene.place.namespace, scene.place.name)


def test_a_pod_of_a_lost_node_is_named_and_its_successor_comes_where_gpus_are_free(
    nodes: IdleNodes, lost: Scene
) -> None:
    """It may run on behind the broken network, so its GPUs are not free; the user may know more."""
    gone = lost.nodes[0]
    successor = until("its successor waits", lambda: _without_node(lost))
    until("it is told", lambda: _reason(lost) in ("WaitingForGpus", "PodNotEnding"))
    (hangs,) = lost.ending()
    ready = lost.place.wait("Ready", "False", "PodNotEnding")
    moving = lost.place.wait("Progressing", "True", "PodNotEnding")
    until("an Event tells it", lambda: lost.events("PodNotEnding"))

    lost.nodes.append(nodes.add("lost", 1))
    lost.serve(2)
    served = lost.place.read()
    lost.hasten(0)
    lost.place.wait("Progressing", "False", "Settled")

    assert len(successor) == 1
    for told in (ready, moving):
        assert f"Pod {hangs['metadata']['name']} was to be gone by" in told["message"]
        assert f"on node {gone}" in told["message"]
        assert "--force" in told["message"]
    assert condition(served, "Progressing")["reason"] == "PodNotEnding"
    assert served["status"]["readyReplicas"] == 2
    assert gone not in {lost.node_of(pod) for pod in lost.pods()}


def _reason(scene: Scene) -> str:
    return str(condition(scene.place.read(), "Ready")["reason"])


def _without_node(scene: Scene) -> list[Manifest]:
    return [pod for pod in scene.pods() if not scene.node_of(pod)]


def test_no_step_of_a_rollout_counts_on_the_gpus_of_a_pod_that_does_not_end(rolled: Scene) -> None:
    """It would start a pod that finds none. That nothing moves is told once the deadline is over,
    and the rollout goes on by itself once the pod is gone."""
    new = rolled.place.current()
    overdue = rolled.place.wait("Progressing", "False", "ProgressDeadlineExceeded")
    stalled = rolled.place.wait("Stalled", "True", "ProgressDeadlineExceeded")
    (hangs,) = rolled.ending()
    revisions = [pod["metadata"]["labels"][LABEL_REVISION] for pod in rolled.pods()]
    until("an Event tells it", lambda: rolled.events("ProgressDeadlineExceeded"))

    rolled.hasten(0)
    until("a pod of the new revision has come", lambda: rolled.place.alive(new))
    rolled.place.wait("Progressing", "True", "RollingOut")

    assert new not in revisions
    assert len(revisions) == 2
    assert "Nothing has moved for 30 s" in overdue["message"]
    assert f"Pod {hangs['metadata']['name']} was to be gone by" in overdue["message"]
    assert stalled["message"] == overdue["message"]
