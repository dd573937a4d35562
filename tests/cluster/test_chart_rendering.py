"""What the chart makes of its values, where that is a matter of several objects or of our own code.
Rules of a single template are in the suites of charts/speculative-operator/tests.

Needs helm, which is one of the cluster's programs.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from local import images
from speculative_operator.api.hardware import Product
from speculative_operator.api.resource import SpeculativeModel
from tests.support.helm import (
    CHART,
    RELEASE,
    RELEASE_NAMESPACE,
    Manifest,
    of_kind,
    of_the_test,
    render,
    rendered,
)
from tests.support.rights import rules_of
from tools.generate import CRD

DIGEST = f"sha256:{'0' * 64}"
REPOSITORY = images.REPOSITORY


def operator(manifests: tuple[Manifest, ...]) -> Manifest:
    (deployment,) = of_kind(manifests, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


@pytest.mark.parametrize("which", ["the operator", "helm test"])
def test_every_pod_passes_restricted_pod_security(which: str) -> None:
    """Many clusters enforce it, and nothing that it forbids is needed."""
    manifests = rendered()
    (deployment,) = of_kind(manifests, "Deployment")
    pod = {
        "the operator": deployment["spec"]["template"]["spec"],
        "helm test": of_the_test(manifests)["Pod"]["spec"],
    }[which]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_every_namespace_is_served_by_a_cluster_role() -> None:
    """The default needs no list that somebody has to keep."""
    manifests = rendered()

    assert len(of_kind(manifests, "ClusterRoleBinding")) == 1
    assert not [arg for arg in operator(manifests)["args"] if arg.startswith("--namespaces")]


def test_counting_gpus_needs_a_right_that_is_off_by_default() -> None:
    """Nodes and everybody's pods are the whole cluster's, also for who serves one namespace."""
    without, granted = rendered(), rendered(namespaces=["one"], rbac={"capacity": True})

    assert not [rule for rule in rules_of(RELEASE, without) if "nodes" in rule["resources"]]
    assert "--count-gpus" not in operator(without)["args"]
    (role,) = [rule for rule in rules_of(RELEASE, granted) if "nodes" in rule["resources"]]
    assert role["verbs"] == ["list"]
    assert "--count-gpus" in operator(granted)["args"]


def test_a_list_of_namespaces_gives_roles_in_these_and_nothing_else() -> None:
    """Whoever asks for this does not trust the operator with the cluster."""
    manifests = rendered(namespaces=["one", "two"])
    places = sorted(role["metadata"]["namespace"] for role in of_kind(manifests, "Role"))

    assert places == ["one", RELEASE_NAMESPACE, "two"]
    assert not of_kind(manifests, "ClusterRoleBinding")
    assert "--namespaces=one,two" in operator(manifests)["args"]


@pytest.mark.parametrize("values", [{}, {"namespaces": ["one"]}], ids=["all", "listed"])
def test_no_right_is_a_wildcard_and_none_is_on_secrets(values: dict[str, Any]) -> None:
    """A stolen token of the operator must not open what the operator never needs."""
    for rule in rules_of(RELEASE, rendered(**values)):
        assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
        assert "secrets" not in rule["resources"]


@pytest.mark.parametrize("values", [{}, {"namespaces": ["one"]}], ids=["all", "listed"])
def test_the_operator_cannot_write_the_spec_of_a_model(values: dict[str, Any]) -> None:
    """The user's object is the user's: only its status is written."""
    verbs = {
        verb
        for rule in rules_of(RELEASE, rendered(**values))
        if "speculativemodels" in rule["resources"]
        for verb in rule["verbs"]
    }

    assert verbs == {"list", "watch"}


def test_the_crd_of_the_chart_is_the_committed_one_and_is_kept() -> None:
    """With a deleted CRD go all models, and with them all that serves."""
    (crd,) = of_kind(rendered(), "CustomResourceDefinition")

    assert crd["spec"] == yaml.safe_load(CRD.read_text())["spec"]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_somebody_else_may_own_the_crd() -> None:
    """Who may not touch the whole cluster can still install for a namespace."""
    manifests = rendered(namespaces=["one"], crd={"create": False})

    assert not of_kind(manifests, "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding")


@pytest.mark.parametrize("who", ["edit", "view"])
def test_users_keep_the_rights_to_their_models_as_long_as_there_are_models(who: str) -> None:
    """Otherwise only administrators of the cluster could make one, or see those that an uninstall
    leaves."""
    roles = {role["metadata"]["name"]: role for role in of_kind(rendered(), "ClusterRole")}
    role = roles[f"speculative-operator-{who}"]

    assert role["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{who}"] == "true"
    assert role["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_no_user_may_write_the_status_of_a_model() -> None:
    """It is what the operator says."""
    roles = {role["metadata"]["name"]: role for role in of_kind(rendered(), "ClusterRole")}

    for rule in roles["speculative-operator-edit"]["rules"]:
        assert "speculativemodels/status" not in rule["resources"]


def test_an_image_without_a_tag_has_the_version_of_the_chart() -> None:
    """Chart, operator and plugin of one version were tested together."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    container = operator(rendered())
    env = {entry["name"]: entry.get("value") for entry in container["env"]}

    assert container["image"] == f"{REPOSITORY}/operator:{version}"
    assert env["SPM_PLUGIN_IMAGE"] == f"{REPOSITORY}/vllm-plugin:{version}"


def test_an_image_goes_by_its_digest_where_one_is_given() -> None:
    """A tag can be moved; who pins digests wants no tag to have a say."""
    manifests = rendered(image={"digest": DIGEST, "tag": "left-out"}, plugin={"digest": DIGEST})
    container = operator(manifests)
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    (test,) = of_the_test(manifests)["Pod"]["spec"]["containers"]

    assert container["image"] == f"{REPOSITORY}/operator@{DIGEST}"
    assert test["image"] == container["image"]
    assert env["SPM_PLUGIN_IMAGE"] == f"{REPOSITORY}/vllm-plugin@{DIGEST}"


def test_two_operators_run_apart_from_each_other_where_they_can() -> None:
    """A node that dies should not take both; on a cluster of one node both still run."""
    (deployment,) = of_kind(rendered(), "Deployment")
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]

    assert deployment["spec"]["replicas"] == 2
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]


def test_a_disruption_budget_keeps_one_of_two_and_lets_a_single_one_go() -> None:
    """A drain of both would leave nobody to lead; a node of one could not be drained."""
    assert not of_kind(rendered(podDisruptionBudget={"enabled": False}), "PodDisruptionBudget")
    (budget,) = of_kind(rendered(), "PodDisruptionBudget")

    assert "minAvailable" not in budget["spec"]
    assert budget["spec"]["maxUnavailable"] == 1


def test_the_test_may_touch_its_own_model_and_nothing_else() -> None:
    """Its account lives as long as the test."""
    made = of_the_test(rendered(namespaces=["one", "two"], test={"model": {"replicas": 1}}))
    named = [rule for rule in made["Role"]["rules"] if "resourceNames" in rule]
    unnamed = [rule for rule in made["Role"]["rules"] if "resourceNames" not in rule]
    model = json.loads(made["ConfigMap"]["data"]["model.json"])

    assert made["Role"]["metadata"]["namespace"] == model["metadata"]["namespace"] == "one"
    assert [rule["verbs"] for rule in unnamed] == [["create"]]
    assert [rule["resourceNames"] for rule in named] == [[model["metadata"]["name"]]]
    assert "hook-succeeded" in made["Role"]["metadata"]["annotations"]["helm.sh/hook-delete-policy"]


def test_the_tests_account_has_another_name_than_its_models() -> None:
    """A model has an account of its own name, and the operator touches no foreign one."""
    made = of_the_test(rendered())
    model = json.loads(made["ConfigMap"]["data"]["model.json"])

    assert made["ServiceAccount"]["metadata"]["name"] != model["metadata"]["name"]


def test_no_service_or_budget_takes_the_tests_pod_for_an_operator() -> None:
    """Prometheus would scrape it, and the Service send to it."""
    manifests = rendered()
    (service,) = of_kind(manifests, "Service")
    (budget,) = of_kind(manifests, "PodDisruptionBudget")
    pod = of_the_test(manifests)["Pod"]["metadata"]["labels"]

    assert not service["spec"]["selector"].items() <= pod.items()
    assert not budget["spec"]["selector"]["matchLabels"].items() <= pod.items()


def test_the_test_asks_for_a_model_that_the_operator_accepts() -> None:
    """By default it is one that fits on any of the supported products."""
    model = json.loads(of_the_test(rendered())["ConfigMap"]["data"]["model.json"])
    model["metadata"] |= {"uid": "u", "generation": 1}
    accepted = SpeculativeModel.model_validate(model).spec

    assert accepted.replicas == 1
    assert set(accepted.accelerator.products) == set(Product)


def test_operators_and_the_test_are_placed_and_marked_alike() -> None:
    """A mesh's sidecar in the test's pod would keep it from ever ending."""
    added = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
    }
    marked = {"podLabels": {"team": "platform"}, "podAnnotations": {"mesh": "off"}}
    manifests = rendered(**added, **marked)
    (deployment,) = of_kind(manifests, "Deployment")

    for pod in (deployment["spec"]["template"], of_the_test(manifests)["Pod"]):
        assert {name: pod["spec"][name] for name in added} == added
        assert pod["metadata"]["labels"]["team"] == "platform"
        assert pod["metadata"]["annotations"]["mesh"] == "off"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"namespace": "one"}, "additional properties 'namespace' not allowed"),
        ({"namespaces": "one"}, "got string, want array"),
        ({"namespaces": ["One"]}, "does not match pattern"),
        ({"logLevel": "loud"}, "value must be one of"),
        ({"engine": {"image": ""}}, "minLength"),
        ({"replicas": "two"}, "got string, want integer"),
        ({"networkPolicy": {"apiServer": {"ports": []}}}, "minItems"),
        ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, "does not match pattern"),
        ({"test": {"namespace": "No"}}, "'No' does not match pattern '^([a-z0-9]("),
        ({"imagePullSecrets": ["a"]}, "at '/imagePullSecrets/0': got string, want object"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_installed(
    values: dict[str, Any], words: str
) -> None:
    """A misspelt value would otherwise be left out in silence."""
    answer = render(**values)

    assert not answer.done
    assert words in answer.complaint


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"image": {"digest": f"SHA256:{'0' * 64}"}}, "image.digest: "),
        ({"plugin": {"digest": "v1"}}, "Write sha256: and 64 digits of 0-9a-f"),
        ({"podLabels": {"app.kubernetes.io/name": "x"}}, "Write a label of another name."),
        ({"namespaces": ["a", "c"], "test": {"namespace": "b"}}, "Write one of namespaces: a, c."),
    ],
)
def test_values_that_fit_the_schema_and_cannot_be_say_what_to_write(
    values: dict[str, Any], words: str
) -> None:
    """By the templates: a schema has no words of its own."""
    answer = render(**values)

    assert not answer.done
    assert words in answer.complaint


def test_the_plugin_is_mounted_where_that_is_asked_for() -> None:
    """Only clusters with image volumes can."""
    flag = "--plugin-image-volume"

    assert flag not in operator(rendered())["args"]
    assert flag in operator(rendered(plugin={"imageVolume": True}))["args"]


@pytest.mark.parametrize(("version", "mounted"), [("1.32.9", False), ("1.33.0", True)])
def test_an_image_is_not_mounted_where_kubernetes_cannot(version: str, mounted: bool) -> None:
    """Every engine's pod would be refused, long after the install."""
    answer = render(f"--kube-version={version}", plugin={"imageVolume": True})

    assert answer.done is mounted
    assert mounted or "Write plugin.imageVolume: false." in answer.complaint
