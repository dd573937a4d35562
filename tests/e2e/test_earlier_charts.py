"""Upgrades from charts of the past, with their own images and a model that was made with them, and
back again: no pod is replaced, and each operator tunes it."""

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
from tests.support.helm import CHART, RELEASE, helm
from tests.support.kubectl import Kubectl
from tests.support.release import (
    OURS,
    READY_LIMIT,
    LiveModel,
    live_model,
    own_values,
    roll_back,
    uninstall,
    upgrade,
)

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
    references = {name: f"{images.REPOSITORY}/{name}:of-{request.param}" for name in IMAGES}
    for name, reference in references.items():
        images.build_from(tree, name, reference)
    images.load(tuple(references.values()))
    yield Earlier(
        tree / "charts" / "speculative-operator",
        tree / "examples" / "local-simulated.yaml",
        references,
    )
    install.install()


def schema_of(crd: str) -> Any:
    """Of a CRD's text."""
    return yaml.safe_load(crd)["spec"]["versions"][0]["schema"]


def schema_in(chart: Path) -> Any:
    """Of the CRD that a chart installs."""
    answer = helm("template", RELEASE, str(chart), "--show-only=templates/crd.yaml")
    assert answer.done, answer.complaint
    return schema_of(answer.output)


def test_an_upgrade_and_the_way_back_leave_the_pods_alone(
    kubectl: Kubectl, earlier: Earlier, namespace: str, run: str
) -> None:
    """The old operator, the new one and the old one again tune one model that serves. A pod that
    the new one adds has the old one's template, and either may go when replicas are fewer again."""

    def schema() -> Any:
        return schema_of(kubectl("get", CRD_NAME, "--output=yaml"))

    def edited(label: str) -> None:
        model.patch({"service": {"annotations": {"upgraded": label}}})
        model.wait_until_settled()

    uninstall(kubectl, OURS)
    upgrade(kubectl, OURS, earlier.chart, earlier.values())
    model = LiveModel(
        kubectl, namespace, live_model(earlier.example, earlier.references["simulated-engine"])
    )
    model.pin(1)
    first = model.containers()
    assert schema() == schema_in(earlier.chart)

    upgrade(kubectl, OURS, CHART, own_values())
    model.pin(2)
    edited(run)
    assert model.containers() == first
    assert schema() == schema_in(CHART)

    model.patch({"replicas": 2})
    model.wait_until_settled()
    both, templates = model.containers(), model.templates()
    model.patch({"replicas": 1})
    wait_for("one pod to be left", lambda: len(model.containers()) == 1, limit=READY_LIMIT)
    model.wait_until_settled()
    left = model.containers()
    assert set(first) < set(both)
    assert len(templates) == 1
    assert set(left) < set(both)

    roll_back(kubectl, OURS)
    model.pin(3)
    edited("back")
    assert model.containers() == left
    assert schema() == schema_in(earlier.chart)
    model.delete()
