"""The chart on a real API server: who may do what, and what an upgrade and an uninstall leave."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import audit, buildah, images, install
from local.access import ClusterAccess
from local.waiting import wait_for
from tests.conftest import RUN_LABEL
from tests.support.api import KubernetesApi, until
from tests.support.helm import (
    CHART,
    RELEASE,
    RELEASE_NAMESPACE,
    helm,
    on,
)
from tests.support.kubectl import Kubectl
from tests.support.release import OURS, READY_LIMIT, LiveModel, own_values, uninstall, upgrade

MODELS = "speculativemodels.speculation.dev"
pytestmark = pytest.mark.timeout(600)  # seconds: the first one waits for two installs
USER_ROLES = (f"clusterrole/{RELEASE}-edit", f"clusterrole/{RELEASE}-view")
FORBIDDEN = 403
NEW_FIELD = "trialSharePercent"
"""Of spec.tuning; the older chart of these tests does not know it."""


Stretch = tuple[datetime, datetime]


def may(kubectl: Kubectl, account: str, namespace: str, *what: str) -> bool:
    """What the API server says to `kubectl auth can-i` for a service account `namespace:name`."""
    who = f"--as=system:serviceaccount:{account}"
    return kubectl.attempt("auth", "can-i", *what, who, f"--namespace={namespace}").done


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


def another_operator(folder: Path) -> str:
    """The image of an operator that gives pods a longer grace: as of a later version."""
    ours = images.reference("operator")
    module = Path("speculative_operator", "resources", "pod_template.py")
    text = (CHART.parents[1] / "operator" / module).read_text()
    changed = text.replace("SPARE_SECONDS = 20", "SPARE_SECONDS = 21")
    assert changed != text
    (folder / module.name).write_text(changed)
    dockerfile = folder / "Dockerfile"
    dockerfile.write_text(f"FROM {ours}\nCOPY {module.name} /opt/speculative-operator/{module}\n")
    other = f"{ours}-later"
    buildah.build(dockerfile, folder, other, {})
    return other


def assert_never_refused(
    namespace: str, account: str, since: datetime, taken: Sequence[Stretch] = ()
) -> None:
    """By the audit log: the account has asked in the namespace, and no answer was 403 but while its
    rights were `taken` away together with it."""
    user = f"system:serviceaccount:{account}"
    asked = [
        request
        for request in audit.requests(since)
        if request.user == user and request.namespace in {namespace, ""}
    ]

    assert asked
    refused = [request for request in asked if request.code == FORBIDDEN]
    assert not [each for each in refused if not any(a <= each.at <= b for a, b in taken)]


@dataclass(frozen=True)
class Upgraded:
    """A model that was made under the older chart, and the moment before that was installed."""

    since: datetime
    model: LiveModel
    spec: Mapping[str, Any]
    """What the API server kept of its spec under the older chart."""
    containers: tuple[tuple[str, str], ...]
    uninstalls: list[Stretch] = field(default_factory=list)


@pytest.fixture(scope="module")
def upgraded(
    cluster: ClusterAccess, kubectl: Kubectl, run: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgraded]:
    """The operator of this checkout, upgraded from an older chart beside a live model."""
    if not cluster.is_local:
        pytest.skip("replaces the operator of the whole cluster")
    images.load(tuple(images.build().values()))
    since = datetime.now(UTC)
    namespace = f"chart-{run}"
    labels = {RUN_LABEL: run}
    upgrade(kubectl, OURS, older_chart(tmp_path_factory.mktemp("chart")), own_values())
    kubectl(
        "create", "-f", "-",
        objects=(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": labels},
            },
        ),
    )  # fmt: skip
    model = LiveModel(kubectl, namespace)
    spec, containers = model.read()["spec"], model.containers()
    upgrade(kubectl, OURS, CHART, own_values())
    yield Upgraded(since, model, spec, containers)
    kubectl("delete", "namespace", namespace, "--wait=false")
    install.install()


def test_an_upgrade_renews_the_crd_and_leaves_a_live_model_alone(upgraded: Upgraded) -> None:
    """Helm never upgrades what lies in a chart's crds/ folder; ours is a template."""
    upgraded.model.patch({"tuning": {NEW_FIELD: 5}})
    upgraded.model.wait_until_settled()

    assert NEW_FIELD not in upgraded.spec["tuning"]
    assert upgraded.model.read()["spec"]["tuning"][NEW_FIELD] == 5
    assert upgraded.model.containers() == upgraded.containers


def test_the_operator_may_do_its_work_and_no_more(kubectl: Kubectl, upgraded: Upgraded) -> None:
    """The API server itself is asked, since roles of other charts add up with ours."""
    account = f"{RELEASE_NAMESPACE}:{RELEASE}"

    assert may(kubectl, account, "default", "watch", MODELS)
    assert may(kubectl, account, "default", "patch", MODELS, "--subresource=status")
    assert may(kubectl, account, "default", "create", "deployments.apps")
    assert may(kubectl, account, RELEASE_NAMESPACE, "update", f"leases/{RELEASE}")
    assert not may(kubectl, account, "default", "patch", MODELS)
    assert not may(kubectl, account, "default", "get", "secrets")
    assert may(kubectl, account, "default", "create", "pods", "--subresource=eviction")
    assert not may(kubectl, account, "default", "create", "pods")
    assert not may(kubectl, account, "default", "delete", "pods")
    assert not may(kubectl, account, "default", "list", "nodes")
    assert not may(kubectl, account, RELEASE_NAMESPACE, "update", "leases/another")


@pytest.mark.parametrize(
    ("role", "allowed", "refused"),
    [
        ("admin", ("create", "delete", "get"), ()),
        ("edit", ("create", "patch", "list"), ()),
        ("view", ("get", "list", "watch"), ("create", "patch", "delete")),
    ],
)
def test_whoever_may_work_in_a_namespace_may_do_so_with_its_models(
    kubectl: Kubectl,
    upgraded: Upgraded,
    role: str,
    allowed: tuple[str, ...],
    refused: tuple[str, ...],
) -> None:
    """By Kubernetes' own roles, into which ours are aggregated; nobody writes the status."""
    space, user = f"--namespace={upgraded.model.namespace}", f"user-with-{role}"
    kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}", space)

    def may_user(*what: str) -> bool:
        return kubectl.attempt("auth", "can-i", *what, f"--as={user}", space).done

    until("the role is aggregated", lambda: may_user(allowed[0], MODELS))
    assert all(may_user(verb, MODELS) for verb in allowed)
    assert not any(may_user(verb, MODELS) for verb in refused)
    assert may_user("get", MODELS, "--subresource=status")
    assert not may_user("patch", MODELS, "--subresource=status")


def test_helm_test_asks_a_model_something(kubectl: Kubectl, upgraded: Upgraded) -> None:
    """With rights and a model of its own, which are gone afterwards."""
    answer = helm(
        "test", *OURS, *on(kubectl.access), "--logs", "--timeout=180s",
    )  # fmt: skip
    left = [
        kubectl("get", kind, f"--namespace={RELEASE_NAMESPACE}", "--output=name")
        for kind in ("serviceaccounts", "roles", "rolebindings", "spm")
    ]
    kubectl("delete", "pod", f"{RELEASE}-test", f"--namespace={RELEASE_NAMESPACE}")

    assert answer.done, answer.output + answer.complaint
    assert "The capital of France is" in answer.output
    assert f"{RELEASE}-test" not in "".join(left)


def test_an_operator_without_rights_to_leases_says_what_to_grant(
    kubectl: Kubectl, api: KubernetesApi, upgraded: Upgraded
) -> None:
    """It would otherwise look as if it ran, and do nothing."""
    space = f"--namespace={RELEASE_NAMESPACE}"
    pods = ("pods", space, f"--selector=app.kubernetes.io/instance={RELEASE}")
    kubectl("delete", "rolebinding", f"{RELEASE}-lease", space)
    kubectl("delete", *pods, "--wait")

    said = until("an operator says why it is not ready", lambda: unready(api), timeout=60)
    kubectl("delete", "lease", RELEASE, space)  # those before could not give it back
    upgrade(kubectl, OURS, CHART, own_values())

    assert "Grant its service account the verbs get, create and update on leases" in said
    assert f"as the chart's Role {RELEASE}-lease does" in said


def unready(api: KubernetesApi) -> str:
    """What the operators' readiness probes answer while that is not `ok`."""
    for pod in api.all("Pod", RELEASE_NAMESPACE, f"app.kubernetes.io/instance={RELEASE}"):
        if address := pod["status"].get("podIP"):
            try:
                urllib.request.urlopen(f"http://{address}:8080/readyz", timeout=5).close()
            except urllib.error.HTTPError as error:
                words = error.read().decode()
                if "has not answered yet" not in words:
                    return words
            except OSError:
                continue
    return ""


def test_the_operator_answers_its_own_metrics(kubectl: Kubectl, upgraded: Upgraded) -> None:
    """Behind the Service that the chart makes, where Prometheus looks."""
    service = json.loads(
        kubectl("get", "service", RELEASE, f"--namespace={RELEASE_NAMESPACE}", "--output=json")
    )
    address, port = service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"]

    def page() -> bytes:
        """Empty while the node's proxy still sends to a pod that was replaced."""
        try:
            with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=10) as answer:
                found: bytes = answer.read()
                return found
        except OSError:
            return b""

    assert b"# TYPE" in until("it answers", page)


def test_a_second_operator_of_every_namespace_is_refused(
    kubectl: Kubectl, upgraded: Upgraded
) -> None:
    """Both would act on each model. One that serves a list beside it is for its owner to see to."""
    second = ("install", "second", str(CHART), "--namespace=default", "--dry-run=server")
    values = {**own_values(), "crd": {"create": False}}

    refused = helm(*second, *on(kubectl.access), values=values)
    listed = helm(*second, *on(kubectl.access), values={**values, "namespaces": ["default"]})

    assert not refused.done
    assert f"{RELEASE} in namespace {RELEASE_NAMESPACE} serves every namespace" in refused.complaint
    assert listed.done, listed.complaint


def test_an_uninstall_keeps_the_crd_and_all_that_serves(
    kubectl: Kubectl, upgraded: Upgraded
) -> None:
    """Taking the operator away must not take the models' traffic away."""
    since = datetime.now(UTC)
    words = uninstall(kubectl, OURS)
    upgraded.uninstalls.append((since, datetime.now(UTC)))
    kept = kubectl.attempt("get", f"crd/{MODELS}", *USER_ROLES)
    upgrade(kubectl, OURS, CHART, own_values())
    wait_for("the model to be Ready", upgraded.model.is_ready, limit=READY_LIMIT)

    assert kept.done, kept.complaint
    assert MODELS in words
    assert upgraded.model.containers() == upgraded.containers


def test_another_operator_rolls_nothing(
    kubectl: Kubectl, upgraded: Upgraded, tmp_path: Path
) -> None:
    """One that renders other pods, with other values; nor does a scale-up or another order then."""
    model, before = upgraded.model, upgraded.model.containers()
    other = another_operator(tmp_path)
    images.load((other,))
    newer = {"image": install.image(other), "engine": {"image": "none:1"}, "logLevel": "debug"}
    upgrade(kubectl, OURS, CHART, {**own_values(), **newer})

    model.patch({"replicas": 2, "accelerator": {"products": ["MI325X", "MI300X"]}})
    model.wait_until_settled()
    after = model.containers()
    templates = model.templates()
    model.patch({"replicas": 1})
    model.wait_until_settled()
    upgrade(kubectl, OURS, CHART, own_values())

    assert set(before) < set(after)
    assert len(after) == 2
    assert len(templates) == 1


def test_the_operator_is_never_refused_what_it_asks_for(upgraded: Upgraded) -> None:
    """A right that is missing shows only once it is needed, and then in somebody's cluster.

    By now it has made a model and found it again twice; here it repairs each kind of child, makes
    and takes away what a model has only at times, rolls it out twice and deletes it.
    """
    model = upgraded.model
    model.patch({"replicas": 2})
    model.wait_until_settled()
    for kind in ("serviceaccounts", "services", "poddisruptionbudgets"):
        model.spoil_labels(kind)
        wait_for(f"{kind} are put right", lambda kind=kind: model.labelled(kind), limit=30)  # type: ignore[misc]
    model.patch({"replicas": 1, "runtime": {"env": [{"name": "ANY", "value": "other"}]}})
    model.wait_until_settled()
    model.patch({"runtime": {"serviceAccountName": "default"}})
    model.wait_until_settled()
    wait_for("its own account is gone", lambda: not model.count("serviceaccounts"), limit=30)
    model.delete()

    account = f"{RELEASE_NAMESPACE}:{RELEASE}"
    assert_never_refused(model.namespace, account, upgraded.since, upgraded.uninstalls)


def test_an_operator_can_be_limited_to_a_namespace(
    kubectl: Kubectl, namespace: str, upgraded: Upgraded
) -> None:
    """It serves a model with Roles alone, and has no right elsewhere."""
    narrow = ("narrow", f"--namespace={namespace}")
    account = f"{namespace}:narrow-speculative-operator"
    since = datetime.now(UTC)
    uninstall(kubectl, OURS)

    upgrade(
        kubectl,
        narrow,
        CHART,
        {**own_values(), "namespaces": [namespace], "crd": {"create": False}},
    )
    LiveModel(kubectl, namespace).delete()

    assert not may(kubectl, account, "default", "watch", MODELS)
    assert_never_refused(namespace, account, since)
    uninstall(kubectl, narrow)
