"""This checkout's tests on somebody else's cluster: selected by two variables, and left clean."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import pytest

from local.kubeconfig import CONTEXT
from tests.support.second_cluster import SecondCluster, second_cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

THEIRS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "theirs", "namespace": "default"},
    "data": {"theirs": "1"},
}
LISTED = "namespaces,crds,clusterroles,clusterrolebindings,configmaps,secrets,nodes"
"""Kinds of which a test may leave something behind, or break what was there."""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondCluster]:
    """Another checkout's cluster, with something in it that is not ours."""
    with second_cluster(tmp_path_factory.mktemp("theirs")) as second:
        manifest = second.checkout / "theirs.json"
        manifest.write_text(json.dumps(THEIRS))
        second("kubectl", "create", "--filename", str(manifest))
        yield second


def run(second: SecondCluster, *tests: str) -> str:
    """What pytest says of these tests on the other cluster, with a production that is ignored."""
    chosen = {
        "KUBECONFIG": "/production",
        "SPM_TEST_KUBECONFIG": second("kubeconfig").strip(),
        "SPM_TEST_CONTEXT": CONTEXT,
    }
    return second.inside([sys.executable, "-m", "pytest", "-q", "-rs", *tests], environment=chosen)


def objects(second: SecondCluster) -> set[str]:
    """What stands in the cluster, told apart by its UID; what Kubernetes itself makes is not."""
    columns = "custom-columns=KIND:.kind,NAME:.metadata.name,UID:.metadata.uid"
    listed = second("kubectl", "get", LISTED, "--all-namespaces", "--no-headers", "-o", columns)
    return {line for line in listed.splitlines() if "kube-root-ca.crt" not in line}


def test_tests_pass_there_and_leave_nothing(theirs: SecondCluster) -> None:
    """Refusals on the real API server, and an operator that reconciles in a labelled namespace."""
    before = objects(theirs)

    said = run(theirs, "tests/cluster/test_crd.py", "tests/cluster/test_reconcile.py")

    assert re.search(r"\d+ passed", said)
    assert "skipped" not in said
    theirs("kubectl", "wait", "--for=delete", "namespaces", "-l", "speculation.dev/test-run")
    assert objects(theirs) == before


def test_what_would_break_that_cluster_is_skipped(theirs: SecondCluster) -> None:
    """Nodes, control plane and the operator of a whole cluster are somebody's."""
    before = objects(theirs)

    said = run(
        theirs,
        "tests/e2e/test_chart_on_node.py",
        "tests/local_cluster/test_local_node.py",
        "tests/e2e/test_at_rest.py",
    )

    assert re.search(r"^\d+ skipped", said.splitlines()[-1])
    assert "replaces the operator of the whole cluster" in said
    assert objects(theirs) == before
