"""Upgrades from charts of the past, with their own images and a model that was made with them, and
back again: no pod is replaced, and each operator tunes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import images, install
from local.access import ClusterAccess
from local.waiting import wait_for
from tests.support.earlier import IMAGES, Earlier, checked_out, is_built, listed, reference
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

CRD_NAME = "crd/speculativemodels.speculation.dev"


@pytest.fixture(params=listed())
def earlier(
    request: pytest.FixtureRequest, cluster: ClusterAccess, tmp_path: Path
) -> Iterator[Earlier]:
    """Its images are on the node; afterwards this checkout's operator is installed again."""
    if not cluster.is_local:
        pytest.skip("replaces the operator of the whole cluster")
    commit = request.param
    found = checked_out(commit, tmp_path)
    if found is None:
        pytest.skip(f"this clone has no commit {commit}: fetch all of its history")
    assert is_built(commit), f"no images of {commit}: run: python -m tests.support.earlier {commit}"
    install.install()
    images.load(tuple(reference(commit, name) for name in IMAGES))
    yield found
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
        kubectl,
        namespace,
        live_model(earlier.example, reference(earlier.commit, "simulated-engine")),
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
