"""The CRD under a group of its own, which no operator on the cluster watches, and an operator that
looks at one namespace only."""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import pytest
import yaml

from local import install
from local.access import ClusterAccess
from tests.conftest import RUN_LABEL
from tests.support.api import KubernetesApi, until
from tests.support.helm import REPLICAS
from tests.support.kubectl import Kubectl
from tests.support.nodeless import MODEL, Place
from tests.support.operator_process import OperatorProcess
from tools.generate import CRD


@dataclass(frozen=True)
class CopiedKind:
    """Our kind in another group: the same schema, rules, columns and subresources."""

    group: str
    version: str
    kind: str
    resource: str

    def model(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """An object of the copied kind."""
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": spec,
        }


@pytest.fixture(scope="session")
def copied_kind(kubectl: Kubectl, run: str) -> Iterator[CopiedKind]:
    """The committed CRD created anew on the real API server, deleted afterwards."""
    crd = yaml.safe_load(CRD.read_text())
    group = f"test-{run}.{crd['spec']['group']}"
    resource = f"{crd['spec']['names']['plural']}.{group}"
    crd["spec"]["group"] = group
    crd["metadata"] = {"name": resource, "labels": {RUN_LABEL: run}}
    kubectl("create", "-f", "-", objects=(crd,))
    kubectl("wait", "--for=condition=Established", f"crd/{resource}", "--timeout=30s")
    kubectl("get", resource, "--all-namespaces")
    (version,) = crd["spec"]["versions"]
    yield CopiedKind(group, version["name"], crd["spec"]["names"]["kind"], resource)
    kubectl("delete", "crd", resource, "--wait=false")


@pytest.fixture(scope="session")
def api(cluster: ClusterAccess) -> KubernetesApi:
    """A raw client of the cluster under test."""
    return KubernetesApi(cluster)


@pytest.fixture(scope="session")
def installed_kind(kubectl: Kubectl, run: str) -> Iterator[None]:
    """Our kind; where no chart has brought the CRD, it is there for these tests."""
    crd = yaml.safe_load(CRD.read_text())
    name = crd["metadata"]["name"]
    if kubectl.attempt("get", "crd", name).done:
        yield
        return
    labelled = {**crd, "metadata": {**crd["metadata"], "labels": {RUN_LABEL: run}}}
    kubectl("create", "-f", "-", objects=(labelled,))
    kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")
    kubectl("get", name, "--all-namespaces")
    yield
    kubectl("delete", "crd", name)


@pytest.fixture(scope="session")
def nobody_else(cluster: ClusterAccess, api: KubernetesApi, installed_kind: None) -> Iterator[None]:
    """No installed operator acts on the models of these tests, whichever worker runs them."""
    where = ("Deployment", install.NAMESPACE, install.RELEASE)
    if api.get(*where) is None:
        yield
        return
    if not cluster.is_local:
        pytest.skip("an operator is installed that would act on the same models")
    with cluster.kubeconfig.open() as shared:
        if _alone(shared):
            api.merge(*where, {"spec": {"replicas": 0}})
            until("the operator rests", lambda: not api.all("Pod", install.NAMESPACE))
        fcntl.flock(shared, fcntl.LOCK_SH)  # waits while the first worker prepares
        yield
        if _alone(shared):
            api.merge(*where, {"spec": {"replicas": REPLICAS}})


def _alone(shared: IO[str]) -> bool:
    """Whether no other worker has the file, which then is ours until we share it."""
    try:
        fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.fixture(scope="module")
def operator(
    cluster: ClusterAccess,
    api: KubernetesApi,
    nobody_else: None,
    run: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    """A running operator with a namespace of its own, for the tests of one module."""
    namespace = f"test-{run}-{uuid.uuid4().hex[:6]}"
    metadata = {"name": namespace, "labels": {RUN_LABEL: run}}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    process = OperatorProcess(cluster, namespace, tmp_path_factory.mktemp("operator"))
    process.start()
    yield process
    if process.process is not None:
        process.stop()
    api.delete("Namespace", None, namespace)
    assert "a fault of the operator" not in process.log()


@pytest.fixture
def qwen(api: KubernetesApi, operator: OperatorProcess) -> Iterator[Place]:
    """A model that is not created yet, in the operator's namespace; gone after the test."""
    place = Place(api, operator.namespace, f"qwen-{uuid.uuid4().hex[:4]}")
    yield place
    api.delete(MODEL, place.namespace, place.name)
