"""What the pages tell a reader to type, typed as it stands there.

Four stories: a model comes over from a Deployment and is looked at, the operator is installed,
upgraded and taken away, and two quick starts. Engines are simulated, and the images those
of this checkout; what needs a registry or somebody else's controller is marked so on the pages.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import images, install
from speculative_operator.api.names import LABEL_MODEL
from tests.conftest import RUN_LABEL
from tests.e2e.conftest import Operator
from tests.support.api import KubernetesApi, until
from tests.support.helm import helm, on
from tests.support.kubectl import Kubectl
from tests.support.models import QUICK_PODS, QUICK_WINDOWS
from tests.support.pages import CHECKOUT, DOCS, blocks
from tests.support.release import OURS
from tests.support.typed import Typed, checkout_in, typed

pytestmark = pytest.mark.timeout(400)  # seconds: the first one starts three models

LOOKED_AT = (
    CHECKOUT / "README.md",
    *(DOCS / f"{name}.md" for name in ("cli", "tuning", "not-shown-on-hardware", "security")),
    *(DOCS / f"{name}.md" for name in ("gitops", "troubleshooting", "rollouts")),
)
"""Pages that look at a model `qwen` which has had traffic; the last two give it a new revision."""

DEPLOYMENT, KSERVE = DOCS / "move-from-deployment.md", DOCS / "move-from-kserve.md"
OPERATIONS, MI300X = DOCS / "operations.md", DOCS / "quick-start-mi300x.md"
ANY_CLUSTER = DOCS / "quick-start-any-cluster.md"
EXECUTED = (*LOOKED_AT, DEPLOYMENT, KSERVE, OPERATIONS, MI300X, ANY_CLUSTER)

PLACE = "default"
KIND = "kind-control-plane"
WORKLOAD = "mbpp"
"""Of the study: there K=5 is a tenth faster than 7, with which Qwen3-8B starts."""
Manifest = dict[str, Any]


def simulated(page: Path) -> Manifest:
    """The model of a page as it is there, but one replica on a simulated engine that is probed and
    ends faster."""
    (found,) = (
        document
        for block in blocks(page)
        if block.language == "yaml"
        for document in yaml.safe_load_all(block.text)
        if document.get("kind") == "SpeculativeModel"
    )
    model: Manifest = found
    model["spec"] |= {"replicas": 1, "tuning": {"window": QUICK_WINDOWS, "trialSharePercent": 40}}
    model["spec"]["runtime"] = {
        **model["spec"].get("runtime", {}),
        "image": images.reference("simulated-engine"),
        "env": [{"name": "SIMULATED_WORKLOAD", "value": WORKLOAD}],
        "sharedMemory": "64Mi",
        "drainSeconds": 2,
        "podTemplate": QUICK_PODS,
    }
    return model


def before_the_move(run: str) -> tuple[Manifest, ...]:
    """What a reader has: a Deployment with its Service, a token, Argo CD's settings."""
    name = "qwen-vllm"
    labels = {"app": name}
    own = {RUN_LABEL: run}
    container = {"name": "vllm", "image": images.reference(images.PAUSE)}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    workload = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pods}
    service = {"selector": labels, "ports": [{"port": 80, "targetPort": 8000}]}
    settings = {"name": "argocd-cm", "namespace": "argocd", "labels": own}
    return (
        an_object("v1", "Namespace", {"name": "argocd", "labels": own}),
        an_object("v1", "ConfigMap", settings),
        an_object("v1", "Secret", {"name": "hf-token", "labels": own}, stringData={"HF_TOKEN": ""}),
        an_object("apps/v1", "Deployment", {"name": name, "labels": own}, spec=workload),
        an_object("v1", "Service", {"name": name, "labels": own}, spec=service),
    )


def an_object(version: str, kind: str, metadata: Manifest, **rest: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


@contextlib.contextmanager
def traffic(api: KubernetesApi) -> Iterator[None]:
    """Sixteen clients of the model `qwen` until the body is left."""
    service = api.get("Service", PLACE, "qwen")
    assert service
    url = f"http://{service['spec']['clusterIP']}"
    load = (sys.executable, "-m", "local.load", f"--url={url}", "--concurrency=16")
    with subprocess.Popen(
        (*load, "--duration=150"), cwd=CHECKOUT, stdout=subprocess.DEVNULL
    ) as clients:
        try:
            yield
        finally:
            clients.terminate()


def is_tuned(api: KubernetesApi) -> bool:
    """What the page of `explain` shows is known: decisions, other K, the speed-up over K=0."""
    model = api.get("SpeculativeModel", PLACE, "qwen")
    assert model
    evidence = model["status"].get("evidence", {})
    return bool(
        model["status"].get("decisions") and evidence.get("alternatives") and "speedup" in evidence
    )


def take_the_operator_away(kubectl: Kubectl) -> None:
    """As it is for a reader who begins. An operator whose rights went first left its Lease."""
    answer = helm("uninstall", *OURS, *on(kubectl.access), "--wait", "--ignore-not-found")
    assert answer.done, answer.complaint
    kubectl("delete", "lease", "--all", f"--namespace={install.NAMESPACE}")


@pytest.fixture(scope="module")
def folder(
    kubectl: Kubectl,
    api: KubernetesApi,
    operator: Operator,
    run: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """The checkout, with the files that a reader has written by then: models and values."""
    del operator
    references = {name: images.reference(name) for name in images.PROJECT_IMAGES}
    folder = checkout_in(tmp_path_factory.mktemp("reader"))
    written: Mapping[str, object] = {
        "qwen.yaml": simulated(DEPLOYMENT),
        "qwen-speculative.yaml": simulated(KSERVE),
        "gemma.yaml": simulated(MI300X),
        "values.yaml": install.values(references),
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content))
    kubectl("apply", "--filename=-", objects=before_the_move(run))
    yield folder
    kubectl("delete", "namespace", "argocd", "models", "--ignore-not-found", "--wait=false")
    kubectl("delete", "node", KIND, "--ignore-not-found")
    kubectl("delete", "speculativemodels", "--all")
    kubectl("delete", "deployments,services,secrets", f"--selector={RUN_LABEL}={run}")
    prune = "kustomize.toolkit.fluxcd.io/prune-"
    kubectl("annotate", "crd", "speculativemodels.speculation.dev", prune)
    until("the pods are gone", lambda: not api.all("Pod", PLACE, LABEL_MODEL), timeout=60)
    install.install()


@pytest.fixture(scope="module")
def moved(folder: Path) -> tuple[Typed, Typed]:
    """Both models that come over from somewhere, at the same time."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda page: typed(page, folder), (DEPLOYMENT, KSERVE))
    return first, second


def test_a_model_takes_over_the_service_of_a_deployment(
    api: KubernetesApi, kubectl: Kubectl, moved: tuple[Typed, Typed]
) -> None:
    """The pages of both moves; clients keep the Service that they know."""
    kubectl("delete", "spm", "qwen-speculative")
    selector = "kubernetes.io/service-name=qwen-vllm"

    def addresses() -> set[str]:
        slices = api.all("EndpointSlice", PLACE, selector)
        return {a for each in slices for end in each["endpoints"] or () for a in end["addresses"]}

    serving = until(
        "the model serves",
        lambda: api.all("Pod", PLACE, "speculation.dev/model=qwen,speculation.dev/serving=true"),
    )
    until(
        "the Service leads to the model",
        lambda: addresses() == {pod["status"]["podIP"] for pod in serving},
    )
    assert "condition met" in moved[1].text()
    assert api.get("Deployment", PLACE, "qwen-vllm") is None


def test_the_pages_show_what_a_model_with_traffic_says(
    api: KubernetesApi, folder: Path, moved: tuple[Typed, Typed]
) -> None:
    """Every command that looks at it or asks something of it; answers as the pages show them."""
    del moved
    with traffic(api):
        until("K=0 was timed and another K chosen", lambda: is_tuned(api), timeout=120)

    pages = [typed(page, folder) for page in LOOKED_AT]

    assert [difference for page in pages for difference in page.differences()] == []
    text = "".join(page.text() for page in pages)
    assert "Ready=True Serving" in text
    assert 'runner="' in text
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


def test_the_operator_is_installed_upgraded_and_taken_away_as_the_page_says(
    api: KubernetesApi, kubectl: Kubectl, folder: Path, moved: tuple[Typed, Typed]
) -> None:
    """And a model is brought back from the backup, which is what one is for."""
    del moved
    take_the_operator_away(kubectl)
    before = api.get("SpeculativeModel", PLACE, "qwen")
    assert before

    page = typed(OPERATIONS, folder)

    after = api.get("SpeculativeModel", PLACE, "qwen")
    assert after
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert "speculativemodel.speculation.dev/qwen condition met" in page.text()
    assert "speculativemodels.speculation.dev" in page.text().rpartition("resource policy")[2]


def test_the_quick_start_on_mi300x_leads_to_a_model_that_answers(
    kubectl: Kubectl, folder: Path, moved: tuple[Typed, Typed]
) -> None:
    """All of it but GPUs, registries and AMD's GPU operator."""
    del moved
    take_the_operator_away(kubectl)
    kubectl("delete", "spm", "--all")

    page = typed(MI300X, folder, HF_TOKEN="none")

    assert "74a1" in page.text()
    assert '"object":"chat.completion"' in page.text().replace(" ", "")
    assert "models/gemma" in page.text()


def test_a_node_is_given_gpus_by_hand_and_a_model_is_served(
    kubectl: Kubectl, folder: Path, moved: tuple[Typed, Typed]
) -> None:
    """kind's node is an object without a kubelet here, so the model runs on the node that has one;
    its image is there under the name that the example writes."""
    del moved
    install.install()
    room = {"capacity": {"cpu": "1"}}
    kubectl(
        "create", "--filename=-", objects=(an_object("v1", "Node", {"name": KIND}, status=room),)
    )

    page = typed(ANY_CLUSTER, folder)

    assert '"object":"text_completion"' in page.text().replace(" ", "")
    assert page.text().count(f"node/{KIND} patched") == 2
