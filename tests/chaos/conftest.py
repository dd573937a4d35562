"""The stage: a model under load, an operator behind a gate, and what came of the faults."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest
import urllib3

from local import devices, images, install, machine
from local.access import ClusterAccess
from tests.chaos import table
from tests.chaos.clients import Clients
from tests.chaos.kept_operator import KeptOperator
from tests.chaos.stage import ROLLOUT, Stage
from tests.conftest import RUN_LABEL
from tests.support import models
from tests.support.api import KubernetesApi, Refused, until
from tests.support.gate import Gate
from tests.support.helm import REPLICAS
from tests.support.operator_process import OperatorProcess
from tests.support.served import Served, apply


@pytest.fixture(scope="session")
def stage(
    cluster: ClusterAccess, run: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """One for all faults: each begins with what the one before has left."""
    if not cluster.is_local:
        pytest.skip("only the local cluster may be broken")
    api, namespace = KubernetesApi(cluster), f"chaos-{run}-{uuid.uuid4().hex[:4]}"
    metadata = {"name": namespace, "labels": {RUN_LABEL: run}}
    where = ("Deployment", install.NAMESPACE, install.RELEASE)
    api.merge(*where, {"spec": {"replicas": 0}})
    until("the installed operator rests", lambda: not api.all("Pod", install.NAMESPACE))
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    try:
        with Gate(cluster, namespace).serving() as gate:
            process = OperatorProcess(
                cluster,
                namespace,
                tmp_path_factory.mktemp("operator"),
                plugin_image=images.reference("vllm-plugin"),
                server=gate.url,
            )
            with KeptOperator(process, gate).running() as operator:
                yield from _playing(api, namespace, gate, operator)
    finally:
        devices.mark_healthy()
        api.delete("Namespace", None, namespace)
        api.merge(*where, {"spec": {"replicas": REPLICAS}})


def _playing(
    api: KubernetesApi, namespace: str, gate: Gate, operator: KeptOperator
) -> Iterator[Stage]:
    served = apply(
        api,
        namespace,
        models.simulated_model(
            "chaos", replicas=2, rollout=ROLLOUT, runtime={"podTemplate": models.QUICK_PROBES}
        ),
    )
    served.wait_ready()
    with Clients("chaos", _Address(served)).sending() as clients:
        made = Stage(api, served, operator, gate, clients, machine.require())
        served.wait("it speculates", lambda found: found["status"].get("mode") == "Speculative")
        made.healed()
        yield made
    api.delete("SpeculativeModel", namespace, served.name)
    until("the pods are gone", lambda: not api.all("Pod", namespace), timeout=120)


class _Address:
    """The Service's address, looked up again when it is a second old; the last one known while the
    API server does not answer, as a name server would have it."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._known = served.url()
        self._at = time.monotonic()

    def __call__(self) -> str:
        if time.monotonic() - self._at > 1:
            self._at = time.monotonic()
            try:
                self._known = self._served.url()
            except (AssertionError, Refused, urllib3.exceptions.HTTPError):
                return self._known
        return self._known


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table."""
    for line in table.lines(table.ROWS):
        terminalreporter.write_line(line)
