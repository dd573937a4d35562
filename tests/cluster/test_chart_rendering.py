"""What the chart makes of its values. Needs helm, which is one of the cluster's programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from speculative_operator.api.resource import SpeculativeModel
from tests.support.helm import (
    CHART,
    RELEASE,
    RELEASE_NAMESPACE,
    Manifest,
    helm,
    of_kind,
    of_the_test,
    render,
    rendered,
)
from tools.generate import CRD

DIGEST = f"sha256:{'0' * 64}"


def rules(manifests: tuple[Manifest, ...]) -> Iterator[Manifest]:
    """Every rule that the operator's own account gets."""
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for binding in of_kind(manifests, "RoleBinding", "ClusterRoleBinding")
    }
    for role in of_kind(manifests, "Role", "ClusterRole"):
        if (role["kind"], role["metadata"]["name"]) in bound:
            yield from role["rules"]


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

    assert not [rule for rule in rules(without) if "nodes" in rule["resources"]]
    assert "--count-gpus" not in operator(without)["args"]
    (role,) = [rule for rule in rules(granted) if "nodes" in rule["resources"]]
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
    for rule in rules(rendered(**values)):
        assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
        assert "secrets" not in rule["resources"]


@pytest.mark.parametrize("values", [{}, {"namespaces": ["one"]}], ids=["all", "listed"])
def test_the_operator_cannot_write_the_spec_of_a_model(values: dict[str, Any]) -> None:
    """The user's object is the user's: only its status is written."""
    verbs = {
        verb
        for rule in rules(rendered(**values))
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


def test_users_who_may_edit_a_namespace_may_edit_its_models() -> None:
    """Otherwise only administrators of the cluster could make one."""
    roles = {role["metadata"]["name"]: role for role in of_kind(rendered(), "ClusterRole")}
    edit = roles["speculative-operator-edit"]

    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert "speculativemodels/status" not in edit["rules"][0]["resources"]


def test_an_image_without_a_tag_has_the_version_of_the_chart() -> None:
    """Chart, operator and plugin of one version were tested together."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    container = operator(rendered())
    env = {entry["name"]: entry.get("value") for entry in container["env"]}

    assert container["image"] == f"speculative-operator/operator:{version}"
    assert env["SPM_PLUGIN_IMAGE"] == f"speculative-operator/vllm-plugin:{version}"


def test_an_image_goes_by_its_digest_where_one_is_given() -> None:
    """A tag can be moved; who pins digests wants no tag to have a say."""
    manifests = rendered(image={"digest": DIGEST, "tag": "left-out"}, plugin={"digest": DIGEST})
    container = operator(manifests)
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    (test,) = of_the_test(manifests)["Pod"]["spec"]["containers"]

    assert container["image"] == f"speculative-operator/operator@{DIGEST}"
    assert test["image"] == container["image"]
    assert env["SPM_PLUGIN_IMAGE"] == f"speculative-operator/vllm-plugin@{DIGEST}"


def test_two_operators_run_apart_from_each_other_where_they_can() -> None:
    """A node that dies should not take both; on a cluster of one node both still run."""
    (deployment,) = of_kind(rendered(), "Deployment")
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]

    assert deployment["spec"]["replicas"] == 2
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]


def test_a_disruption_budget_lets_a_single_operator_go() -> None:
    """Else its node could not be drained."""
    assert not of_kind(rendered(), "PodDisruptionBudget")
    (budget,) = of_kind(rendered(podDisruptionBudget={"enabled": True}), "PodDisruptionBudget")

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
    manifests = rendered(podDisruptionBudget={"enabled": True})
    (service,) = of_kind(manifests, "Service")
    pod = of_the_test(manifests)["Pod"]["metadata"]["labels"]

    assert not service["spec"]["selector"].items() <= pod.items()


def test_the_test_asks_for_a_model_that_the_operator_accepts() -> None:
    """By default it is one that fits on any of the supported products."""
    model = json.loads(of_the_test(rendered())["ConfigMap"]["data"]["model.json"])
    model["metadata"] |= {"uid": "u", "generation": 1}

    assert SpeculativeModel.model_validate(model).spec.replicas == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"namespace": "one"}, "additional properties 'namespace' not allowed"),
        ({"namespaces": "one"}, "got string, want array"),
        ({"namespaces": ["One"]}, "does not match pattern"),
        ({"logLevel": "loud"}, "value must be one of"),
        ({"engine": {"image": ""}}, "minLength"),
        ({"image": {"digest": "v1"}}, "does not match pattern"),
        ({"replicas": "two"}, "got string, want integer"),
        ({"networkPolicy": {"apiServer": {"ports": []}}}, "minItems"),
        ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, "does not match pattern"),
        ({"test": {"namespace": "No"}}, "anyOf"),
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
    "values", sorted((CHART / "ci").glob("*.yaml")), ids=lambda path: path.stem
)
def test_notes_say_what_an_uninstall_leaves(values: Path) -> None:
    """Who reads them has models that serve."""
    arguments = ("install", RELEASE, str(CHART), f"--namespace={RELEASE_NAMESPACE}")
    answer = helm(*arguments, "--dry-run=client", values=yaml.safe_load(values.read_text()))

    assert answer.done, answer.complaint
    assert "leaves the models serving" in answer.output


def test_the_plugin_is_mounted_where_that_is_asked_for() -> None:
    """Only clusters with image volumes can."""
    flag = "--plugin-image-volume"

    assert flag not in operator(rendered())["args"]
    assert flag in operator(rendered(plugin={"imageVolume": True}))["args"]
