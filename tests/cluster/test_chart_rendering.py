"""What the chart makes of its values. Needs helm, which is one of the cluster's programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.helm import CHART, RELEASE_NAMESPACE, Manifest, render, rendered
from tools.generate import CRD


def of_kind(manifests: tuple[Manifest, ...], *kinds: str) -> tuple[Manifest, ...]:
    return tuple(manifest for manifest in manifests if manifest["kind"] in kinds)


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


def test_the_operator_passes_restricted_pod_security() -> None:
    """Many clusters enforce it, and the operator needs nothing that it forbids."""
    (deployment,) = of_kind(rendered(), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
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


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"namespace": "one"}, "additional properties 'namespace' not allowed"),
        ({"namespaces": "one"}, "got string, want array"),
        ({"namespaces": ["One"]}, "does not match pattern"),
        ({"logLevel": "loud"}, "value must be one of"),
        ({"engine": {"image": ""}}, "minLength"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_installed(
    values: dict[str, Any], words: str
) -> None:
    """A misspelt value would otherwise be left out in silence."""
    answer = render(**values)

    assert not answer.done
    assert words in answer.complaint


def test_every_value_is_explained() -> None:
    """`helm show values` is the page that people read."""
    text = (CHART / "values.yaml").read_text()
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    values = yaml.safe_load(text)

    assert set(values) == set(schema["properties"]) - {"global"}
    assert text.count("\n#") + text.startswith("#") >= 5
