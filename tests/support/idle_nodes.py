"""Nodes with GPUs and without a kubelet: the real scheduler and the real controllers act on them,
and a test says what their pods do. What is to end there hangs until somebody forces it."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import urllib3

from local.node_labels import amd_labels
from speculative_operator.api.names import LABEL_MODEL_UID
from tests.support.api import KubernetesApi, Manifest, Refused, until

LEASES = "kube-node-lease"
ALIVE_SECONDS = 10.0
"""Between two signs of life: the control plane gives a node up after 50 s without one."""

SELECTED = "speculation.dev/idle-node"
"""The label that says whose pods a node is for, and the taint that keeps all others off."""

KEEPS_OFF = {"key": SELECTED, "effect": "NoSchedule"}
UNREACHABLE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 1,
}
"""By default a pod tolerates a node that is gone for five minutes."""


@dataclass
class IdleNodes:
    """The nodes of one test file."""

    api: KubernetesApi
    names: list[str] = field(default_factory=list)
    _alive: set[str] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    def add(self, group: str, gpus: int) -> str:
        """A node for models that select `group`; its name once pods may run on it."""
        name = f"idle-{uuid.uuid4().hex[:8]}"
        room = {"cpu": "64", "memory": "1Ti", "pods": "110", "amd.com/gpu": str(gpus)}
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {SELECTED: group, **amd_labels(gpus)}},
                "spec": {"taints": [KEEPS_OFF]},
                "status": {
                    "capacity": room,
                    "allocatable": room,
                    "conditions": [_condition("True")],
                },
            }
        )
        self.names.append(name)
        self._alive.add(name)
        self._sign(name)
        until(f"node {name} takes pods", lambda: len(self._node(name)["spec"]["taints"]) == 1)
        return name

    def lose(self, name: str) -> None:
        """Its kubelet is not heard of any more, as the control plane would say after a minute."""
        self._alive.discard(name)
        self.api.call(
            "PATCH",
            f"{self.api.path('Node', None, name)}/status",
            {"status": {"conditions": [_condition("Unknown")]}},
            "application/strategic-merge-patch+json",
        )

    def taint(self, name: str, *taints: Manifest) -> None:
        """These and no others but our own."""
        self.api.merge("Node", None, name, {"spec": {"taints": [KEEPS_OFF, *taints]}})

    @contextlib.contextmanager
    def alive(self) -> Iterator[IdleNodes]:
        """While the body runs; afterwards they are gone."""
        thread = threading.Thread(target=self._live, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()
            for name in self.names:
                self.api.delete("Node", None, name)
                self.api.delete("Lease", LEASES, name)

    def _live(self) -> None:
        while not self._ended.wait(ALIVE_SECONDS):
            for name in sorted(self._alive):
                with contextlib.suppress(Refused, urllib3.exceptions.HTTPError):  # once more soon
                    self._sign(name)

    def _sign(self, name: str) -> None:
        """Of life."""
        self.api.apply(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name, "namespace": LEASES},
                "spec": {
                    "holderIdentity": name,
                    "leaseDurationSeconds": 40,
                    "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                },
            }
        )

    def _node(self, name: str) -> Manifest:
        found = self.api.get("Node", None, name)
        assert found is not None
        return found


def on_idle_nodes(group: str, **runtime: Any) -> dict[str, Any]:
    """Sections of a model that runs on the nodes of a group, found by the real scheduler. Its pods
    are given the least grace."""
    return {
        "accelerator": {
            "products": ["MI300X"],
            "nodeSelector": {SELECTED: group},
            "tolerations": [UNREACHABLE, {"key": SELECTED, "operator": "Exists"}],
        },
        "runtime": {
            "podTemplate": {"spec": {"schedulerName": "default-scheduler"}},
            "drainSeconds": 0,
            **runtime,
        },
    }


def pods_of(api: KubernetesApi, namespace: str, uid: str) -> list[Manifest]:
    """All pods of a model, those that are ending included."""
    return api.all("Pod", namespace, f"{LABEL_MODEL_UID}={uid}")


def _condition(status: str) -> Manifest:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": status,
        "reason": "Test",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
