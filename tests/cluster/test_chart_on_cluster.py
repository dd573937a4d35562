"""The chart on a real API server: who may do what, and what an upgrade and an uninstall leave."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import images, install
from local.access import ClusterAccess
from local.waiting import wait_for
from speculative_operator.api.names import LABEL_MODEL_UID
from tests.support.helm import CHART, RELEASE, RELEASE_NAMESPACE, helm, on
from tests.support.kubectl import Kubectl

EXAMPLE = CHART.parents[1] / "examples" / "local-simulated.yaml"
MODELS = "speculativemodels.speculation.dev"
READY_LIMIT = 120.0
OURS = (RELEASE, f"--namespace={RELEASE_NAMESPACE}")
NEW_FIELD = "trialSharePercent"
"""Of spec.tuning; the older chart of these tests does not know it."""


@pytest.fixture(scope="module", autouse=True)
def release(cluster: ClusterAccess) -> Iterator[None]:
    """The operator of this checkout, installed by its chart before and after these tests."""
    if not cluster.is_local:
        pytest.skip("replaces the operator of the whole cluster")
    install.install()
    yield
    install.install()


def may(kubectl: Kubectl, account: str, namespace: str, *what: str) -> bool:
    """What the API server says to `kubectl auth can-i` for a service account `namespace:name`."""
    who = f"--as=system:serviceaccount:{account}"
    return kubectl.attempt("auth", "can-i", *what, who, f"--namespace={namespace}").done


def upgrade(kubectl: Kubectl, release: Sequence[str], chart: Path, values: Any) -> None:
    """Brings `release` (its name and where it is) to `chart`; returns once it is ready."""
    answer = helm(
        "upgrade", *release, str(chart), *on(kubectl.access),
        "--install", "--wait", "--timeout=180s", values=values,
    )  # fmt: skip
    assert answer.done, answer.complaint


def uninstall(kubectl: Kubectl, release: Sequence[str]) -> None:
    answer = helm("uninstall", *release, *on(kubectl.access), "--wait")
    assert answer.done, answer.complaint


def own_values() -> dict[str, Any]:
    """The images that `release` has brought to the node."""
    return dict(install.values({name: images.reference(name) for name in images.PROJECT_IMAGES}))


def older_chart(folder: Path) -> Path:
    """The chart before a field was added to the CRD: of an older version, otherwise today's."""
    chart = folder / "older"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.0.1"}))
    template = chart / "templates" / "crd.yaml"
    head, spec = template.read_text().split("\nspec:\n")
    body, tail = spec.rsplit("{{- end }}", 1)
    crd = yaml.safe_load(f"spec:\n{body}")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["tuning"]["properties"][NEW_FIELD]
    template.write_text(f"{head}\n{yaml.safe_dump(crd)}{{{{- end }}}}{tail}")
    return chart


class LiveModel:
    """A model with a simulated engine, seen through kubectl."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self._kubectl = kubectl
        self._namespace = namespace
        model = yaml.safe_load(EXAMPLE.read_text())
        model["spec"]["runtime"]["image"] = images.reference("simulated-engine")
        self._name = model["metadata"]["name"]
        kubectl("apply", f"--namespace={namespace}", "--filename=-", objects=(model,))
        wait_for("the model to be Ready", self.is_ready, limit=READY_LIMIT)

    def read(self) -> dict[str, Any]:
        where = f"--namespace={self._namespace}"
        model: dict[str, Any] = json.loads(
            self._kubectl("get", "spm", self._name, where, "--output=json")
        )
        return model

    def is_ready(self) -> bool:
        conditions = self.read().get("status", {}).get("conditions", ())
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def is_up_to_date(self) -> bool:
        model = self.read()
        return bool(model["status"]["observedGeneration"] == model["metadata"]["generation"])

    def containers(self) -> tuple[tuple[str, str], ...]:
        """UID of each pod and id of its container: other ones after any restart."""
        selector = f"--selector={LABEL_MODEL_UID}={self.read()['metadata']['uid']}"
        pods = json.loads(
            self._kubectl("get", "pods", f"--namespace={self._namespace}", selector, "-ojson")
        )
        return tuple(
            (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["containerID"])
            for pod in pods["items"]
        )

    def set_new_field(self, value: int) -> None:
        patch = json.dumps({"spec": {"tuning": {NEW_FIELD: value}}})
        where = f"--namespace={self._namespace}"
        self._kubectl("patch", "spm", self._name, where, "--type=merge", f"--patch={patch}")

    def new_field(self) -> int | None:
        value: int | None = self.read()["spec"]["tuning"].get(NEW_FIELD)
        return value


def test_the_operator_may_do_its_work_and_no_more(kubectl: Kubectl) -> None:
    """The API server itself is asked, since roles of other charts add up with ours."""
    account = f"{RELEASE_NAMESPACE}:{RELEASE}"

    assert may(kubectl, account, "default", "watch", MODELS)
    assert may(kubectl, account, "default", "patch", MODELS, "--subresource=status")
    assert may(kubectl, account, "default", "create", "deployments.apps")
    assert may(kubectl, account, RELEASE_NAMESPACE, "update", f"leases/{RELEASE}")
    assert not may(kubectl, account, "default", "patch", MODELS)
    assert not may(kubectl, account, "default", "get", "secrets")
    assert not may(kubectl, account, "default", "delete", "pods")
    assert not may(kubectl, account, "default", "list", "nodes")
    assert not may(kubectl, account, RELEASE_NAMESPACE, "update", "leases/another")


def test_a_second_operator_can_be_limited_to_a_namespace(kubectl: Kubectl, namespace: str) -> None:
    """It becomes ready, so it asks for nothing that its Roles do not give."""
    values = {**own_values(), "namespaces": [namespace], "crd": {"create": False}}
    narrow = ("narrow", f"--namespace={namespace}")
    upgrade(kubectl, narrow, CHART, values)
    account = f"{namespace}:narrow-speculative-operator"

    assert may(kubectl, account, namespace, "watch", MODELS)
    assert not may(kubectl, account, "default", "watch", MODELS)
    uninstall(kubectl, narrow)


def test_the_operator_answers_its_own_metrics(kubectl: Kubectl) -> None:
    """Behind the Service that the chart makes, where Prometheus looks."""
    service = json.loads(
        kubectl("get", "service", RELEASE, f"--namespace={RELEASE_NAMESPACE}", "--output=json")
    )
    address, port = service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"]

    with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=10) as answer:
        assert b"# TYPE" in answer.read()


def test_an_upgrade_renews_the_crd_and_leaves_a_live_model_alone(
    kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    """Helm never upgrades what lies in a chart's crds/ folder; ours is a template."""
    upgrade(kubectl, OURS, older_chart(tmp_path), own_values())
    model = LiveModel(kubectl, namespace)
    before = model.containers()
    assert model.new_field() is None

    upgrade(kubectl, OURS, CHART, own_values())
    model.set_new_field(5)
    wait_for("the new operator to see the edit", model.is_up_to_date, limit=READY_LIMIT)

    assert model.new_field() == 5
    assert model.containers() == before


def test_an_uninstall_keeps_the_crd_and_all_that_serves(kubectl: Kubectl, namespace: str) -> None:
    """Taking the operator away must not take the models' traffic away."""
    model = LiveModel(kubectl, namespace)
    before = model.containers()

    uninstall(kubectl, OURS)
    kept = kubectl.attempt("get", "crd", MODELS)
    install.install()
    wait_for("the model to be Ready", model.is_ready, limit=READY_LIMIT)

    assert kept.done, kept.complaint
    assert model.containers() == before
