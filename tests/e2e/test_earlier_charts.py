"""Upgrades from charts of the past, with their own images and a model that was made with them, and
back again: no pod is replaced."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import images, install
from local.access import ClusterAccess
from local.paths import CHECKOUT
from local.waiting import wait_for
from tests.support.helm import CHART
from tests.support.kubectl import Kubectl
from tests.support.release import (
    OURS,
    READY_LIMIT,
    LiveModel,
    live_model,
    own_values,
    uninstall,
    upgrade,
)
from tools.generate import CRD

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

EARLIER = CHECKOUT / "tests" / "data" / "earlier_charts.txt"
IMAGES = ("operator", "vllm-plugin", "simulated-engine")
CRD_NAME = "crd/speculativemodels.speculation.dev"


def commits() -> list[str]:
    """All that are listed."""
    lines = (line.partition("#")[0].split() for line in EARLIER.read_text().splitlines())
    return [words[0] for words in lines if words]


@dataclass(frozen=True)
class Earlier:
    """An earlier state of the project: its chart and the values that name its images."""

    chart: Path
    example: Path
    references: dict[str, str]

    def values(self) -> dict[str, Any]:
        return {
            "image": install.image(self.references["operator"]),
            "plugin": install.image(self.references["vllm-plugin"]),
        }


def checked_out(commit: str, folder: Path) -> Path:
    """The files of a commit."""
    command = ["git", "-c", "safe.directory=*", "archive", commit]
    archived = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False)
    if archived.returncode:
        pytest.skip(f"this clone has no commit {commit}: fetch all of its history")
    subprocess.run(["tar", "--extract", f"--directory={folder}"], input=archived.stdout, check=True)
    return folder


@pytest.fixture(params=commits())
def earlier(
    request: pytest.FixtureRequest, cluster: ClusterAccess, tmp_path: Path
) -> Iterator[Earlier]:
    """Its images are on the node; afterwards this checkout's operator is installed again."""
    if not cluster.is_local:
        pytest.skip("replaces the operator of the whole cluster")
    install.install()
    tree = checked_out(request.param, tmp_path)
    references = {
        name: f"docker.io/speculative-operator/{name}:of-{request.param}" for name in IMAGES
    }
    for name, reference in references.items():
        images.build_from(tree, name, reference)
    images.load(tuple(references.values()))
    yield Earlier(
        tree / "charts" / "speculative-operator",
        tree / "examples" / "local-simulated.yaml",
        references,
    )
    install.install()


def schema(kubectl: Kubectl) -> Any:
    """Of the CRD as it stands."""
    found = yaml.safe_load(kubectl("get", CRD_NAME, "--output=yaml"))
    return found["spec"]["versions"][0]["schema"]


def test_an_upgrade_and_the_way_back_leave_the_pods_alone(
    kubectl: Kubectl, earlier: Earlier, namespace: str, run: str
) -> None:
    """The old operator, the new one and the old one again look at one model that serves."""
    uninstall(kubectl, OURS)
    upgrade(kubectl, OURS, earlier.chart, earlier.values())
    then = schema(kubectl)
    model = LiveModel(
        kubectl, namespace, live_model(earlier.example, earlier.references["simulated-engine"])
    )
    containers = model.containers()

    upgrade(kubectl, OURS, CHART, own_values())
    now = schema(kubectl)
    model.patch({"replicas": 2, "service": {"annotations": {"upgraded": run}}})
    model.wait_until_settled()
    upgraded, templates = model.containers(), model.templates()
    model.patch({"replicas": 1})
    model.wait_until_settled()

    upgrade(kubectl, OURS, earlier.chart, earlier.values())
    model.patch({"service": {"annotations": {"upgraded": "back"}}})
    model.wait_until_settled()
    wait_for("the model to be Ready", model.is_ready, limit=READY_LIMIT)

    assert now == yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]
    assert now != then
    assert schema(kubectl) == then
    assert set(containers) < set(upgraded)
    assert len(templates) == 1
    assert model.containers() == containers
    model.delete()
