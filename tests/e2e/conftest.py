"""The operator, installed by its chart on the local node, and namespaces to put models into."""

from __future__ import annotations

import contextlib
import re
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator

import pytest

from local import binaries, install, machine
from local.access import ClusterAccess
from tests.conftest import RUN_LABEL
from tests.support.api import KubernetesApi, Manifest, until
from tests.support.helm import REPLICAS

DEPLOYMENT = "speculative-operator"


class Operator:
    """The installed operator, which a test may stop and kill."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    def pods(self) -> list[Manifest]:
        """Its pods, those that are ending included."""
        return self._api.all("Pod", install.NAMESPACE, f"app.kubernetes.io/name={DEPLOYMENT}")

    def leader(self) -> Manifest:
        """The pod that leads, once one does."""
        (pod,) = until("an operator leads", self._leading, timeout=120)
        return pod

    def kill(self) -> None:
        """Kills the leader's process, and waits until its pod has another one that is ready."""
        pod = self.leader()
        (killed,) = pod["status"]["containerStatuses"]
        containerd = (str(binaries.folder() / "ctr"), "--namespace=k8s.io")
        task = killed["containerID"].removeprefix("containerd://")
        command = (*containerd, "tasks", "kill", "--signal=SIGKILL", task)
        subprocess.run(machine.require().inside(*command), check=True)
        until("another process is ready", lambda: self._ready_after(pod), timeout=120)

    def restart(self) -> None:
        """Deletes its pods, which give the Lease back, and waits until another one leads."""
        before = {pod["metadata"]["uid"] for pod in self.pods()}
        for pod in self.pods():
            self._api.delete("Pod", install.NAMESPACE, pod["metadata"]["name"])
        until(
            "another operator leads",
            lambda: any(pod["metadata"]["uid"] not in before for pod in self._leading()),
            timeout=120,
        )

    def passes(self) -> float:
        """How often it has looked at a model since it started, by its own metrics."""
        url = f"http://{self.leader()['status']['podIP']}:8080/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            page = answer.read().decode()
        name = "speculative_operator_reconcile_seconds_count"
        return sum(map(float, re.findall(rf"^{name}{{.*}} (\S+)$", page, re.MULTILINE)))

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """No operator runs before the body is left; returns once there are ready ones again."""
        self._scale(0)
        try:
            until("the operator is gone", lambda: not self.pods(), timeout=120)
            yield
        finally:
            self._scale(REPLICAS)
        until("the operator is ready", lambda: any(map(_is_ready, self.pods())), timeout=120)

    def _scale(self, replicas: int) -> None:
        where = ("Deployment", install.NAMESPACE, DEPLOYMENT)
        self._api.merge(*where, {"spec": {"replicas": replicas}})

    def _ready_after(self, before: Manifest) -> bool:
        (container,) = before["status"]["containerStatuses"]
        return any(
            found["ready"] and found["restartCount"] > container["restartCount"]
            for pod in self.pods()
            if pod["metadata"]["uid"] == before["metadata"]["uid"]
            for found in pod["status"]["containerStatuses"]
        )

    def _leading(self) -> list[Manifest]:
        """The pod that holds the Lease, if there is one."""
        lease = self._api.get("Lease", install.NAMESPACE, DEPLOYMENT) or {"spec": {}}
        holder = lease["spec"].get("holderIdentity")
        return [pod for pod in self.pods() if pod["metadata"]["name"] == holder]


def _is_ready(pod: Manifest) -> bool:
    return any(
        status["type"] == "Ready" and status["status"] == "True"
        for status in pod.get("status", {}).get("conditions", [])
    )


@pytest.fixture(scope="session")
def api(cluster: ClusterAccess) -> KubernetesApi:
    """A raw client of the cluster under test."""
    if not cluster.is_local:
        pytest.skip("only the local cluster has the images of this checkout")
    return KubernetesApi(cluster)


@pytest.fixture(scope="session")
def operator(api: KubernetesApi) -> Operator:
    """The operator of this checkout, installed by the chart."""
    install.install()
    return Operator(api)


def _hastened(api: KubernetesApi, namespace: str) -> list[Manifest]:
    """The pods that are left, which nobody sends requests any more: each is given a second."""
    pods = api.all("Pod", namespace)
    for pod in pods:
        if pod["metadata"].get("deletionGracePeriodSeconds", 2) > 1:
            api.delete("Pod", namespace, pod["metadata"]["name"], grace=1)
    return pods


@pytest.fixture(scope="module")
def place(api: KubernetesApi, run: str) -> Iterator[str]:
    """A namespace for the tests of one module, under enforced restricted pod security."""
    name = f"e2e-{run}-{uuid.uuid4().hex[:4]}"
    labels = {RUN_LABEL: run, "pod-security.kubernetes.io/enforce": "restricted"}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        }
    )
    yield name
    for model in api.all("SpeculativeModel", name):
        api.delete("SpeculativeModel", name, model["metadata"]["name"])
    until("the pods are gone", lambda: not _hastened(api, name), timeout=120)
    api.delete("Namespace", None, name)
