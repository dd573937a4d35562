"""Fixtures of the tests that need a Kubernetes, and which tests may run side by side."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from local.access import ClusterAccess, ClusterAccessError, cluster_access
from local.machine import NotRunningError
from tests.support.kubectl import Kubectl

RUN_LABEL = "speculation.dev/test-run"
"""On every object that a test run makes outside a namespace of its own, and on those namespaces."""


ONE_AFTER_THE_OTHER = frozenset(
    f"tests/e2e/test_{name}.py"
    for name in (
        "at_rest",
        "autoscaler_on_node",
        "chart_on_node",
        "docs_on_node",
        "faulty_engines_on_node",
        "gitops_on_node",
        "image_volume_on_node",
        "keda_on_node",
        "network_on_node",
        "prometheus_on_node",
        "prometheus_operator_on_node",
        "quick_start_on_node",
        "restarts_on_node",
        "rollouts_on_node",
        "scarce_gpus_on_node",
        "simulated_engines",
        "start_failures_on_node",
        "start_failures_on_vllm",
        "trials_on_node",
    )
)
"""They restart or replace the installed operator, change how many GPUs there are, or need some."""


class _ByFile(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """A file to a worker; files that would disturb each other to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "one after the other" if file in ONE_AFTER_THE_OTHER else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Of `pytest -n`."""
    return _ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of what the others have done come after them."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def run() -> str:
    """Tells this run's objects from another's. It begins with a letter: a label must be a text, and
    to YAML `12e45678` is a number."""
    return f"r{uuid.uuid4().hex[:7]}"


@pytest.fixture(scope="session")
def cluster() -> ClusterAccess:
    """The cluster under test; without one the test fails and says which command starts it."""
    try:
        return cluster_access()
    except (ClusterAccessError, NotRunningError) as problem:
        pytest.fail(str(problem), pytrace=False)


@pytest.fixture(scope="session")
def kubectl(cluster: ClusterAccess) -> Kubectl:
    """The real kubectl against the cluster under test."""
    return Kubectl(cluster)


@pytest.fixture
def namespace(kubectl: Kubectl, run: str) -> Iterator[str]:
    """A fresh namespace with this run's label, deleted with all in it afterwards."""
    name = f"test-{run}-{uuid.uuid4().hex[:6]}"
    labels = {RUN_LABEL: run}
    manifest = {"apiVersion": "v1", "kind": "Namespace"}
    kubectl(
        "create", "-f", "-", objects=({**manifest, "metadata": {"name": name, "labels": labels}},)
    )
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests have measured and do not assert: the lines recorded as `told`."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, line in getattr(report, "user_properties", ()):
            if name == "told" and report.when == "call":
                terminalreporter.write_line(str(line))
