"""GitOps tools and the API server: order within a commit, what is waited for, no lasting diff."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.access import ClusterAccess
from tests.conftest import RUN_LABEL
from tests.support.api import KubernetesApi, until
from tests.support.gitops import Repository, flux
from tests.support.kubectl import Kubectl
from tests.support.nodeless import nodeless_model
from tests.support.operator_process import OperatorProcess
from tests.support.quotas import obeyed_quota
from tools.generate import CRD
from tools.golden import EXAMPLES, examples

Manifest = dict[str, Any]
MODEL = "SpeculativeModel"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Without a commit."""
    folder = tmp_path / "repository"
    folder.mkdir()
    return Repository(folder)


@pytest.fixture
def new_kind(kubectl: Kubectl, run: str) -> Iterator[Manifest]:
    """A copy of our CRD in a group that the API server does not know; gone after the test."""
    crd: Manifest = yaml.safe_load(CRD.read_text())
    group = f"gitops-{run}.{crd['spec']['group']}"
    crd["metadata"] = {
        "name": f"{crd['spec']['names']['plural']}.{group}",
        "labels": {RUN_LABEL: run},
    }
    crd["spec"]["group"] = group
    yield crd
    kubectl("delete", "crd", crd["metadata"]["name"], "--ignore-not-found", "--wait=false")


@pytest.fixture
def new_namespace(kubectl: Kubectl, run: str) -> Iterator[Manifest]:
    """A namespace that does not exist yet; gone after the test."""
    name = f"gitops-{run}-{uuid.uuid4().hex[:4]}"
    metadata = {"name": name, "labels": {RUN_LABEL: run}}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def test_crd_namespace_and_model_of_one_commit_are_applied_and_an_unseen_model_is_not_ready(
    cluster: ClusterAccess,
    repository: Repository,
    new_kind: Manifest,
    new_namespace: Manifest,
    tmp_path: Path,
) -> None:
    """In stages, as a model can only be made when its kind is known. No operator looks at this
    kind: a tool that took it for finished would hand over what nobody has begun."""
    model = {
        "apiVersion": f"{new_kind['spec']['group']}/v1alpha1",
        "kind": MODEL,
        "metadata": {"name": "unseen", "namespace": new_namespace["metadata"]["name"]},
        "spec": nodeless_model("unseen")["spec"],
    }
    repository.commit(a_model=[model], crd=[new_kind], namespace=[new_namespace])

    with flux(cluster, repository, tmp_path, timeout="3s") as running:
        first = running.wait("the first reconciliation has ended", lambda _: True)

    assert sorted(line.split("/")[0] for line in first.changed) == [
        "CustomResourceDefinition",
        "Namespace",
        MODEL,
    ]
    assert first.reason == "HealthCheckFailed"
    assert [(found.status, found.message) for found in first.unhealthy] == [
        ("InProgress", f"{MODEL} generation is 1, but latest observed generation is -1")
    ]


@pytest.fixture(scope="module")
def applied(
    api: KubernetesApi, kubectl: Kubectl, operator: OperatorProcess
) -> tuple[Manifest, ...]:
    """All examples, applied by a user and taken in by the operator. No pod of theirs may start."""
    namespace = operator.namespace
    obeyed_quota(api, namespace, {"pods": "0"})
    files = (*examples(), EXAMPLES / "gitops" / "models" / "models.yaml")
    manifests = tuple(
        document
        for file in files
        for document in yaml.safe_load_all(file.read_text())
        if document["kind"] != "Namespace"
    )
    for manifest in manifests:
        manifest["metadata"]["namespace"] = namespace
    kubectl("apply", "--server-side", "--filename=-", objects=manifests)
    until("every model was taken in", lambda: not _not_seen(api, namespace), timeout=120)
    return manifests


def _not_seen(api: KubernetesApi, namespace: str) -> list[str]:
    return [
        found["metadata"]["name"]
        for found in api.all(MODEL, namespace)
        if found["status"]["observedGeneration"] != found["metadata"]["generation"]
    ]


def test_an_unchanged_example_shows_no_difference(
    kubectl: Kubectl, applied: tuple[Manifest, ...]
) -> None:
    """What `kubectl diff` shows for ever, nobody reads any more."""
    changed = copy.deepcopy(applied[0])
    changed["spec"]["model"]["maxModelLen"] = 1234
    diff = ("diff", "--server-side", "--filename=-")

    def no_difference() -> bool:
        answer = kubectl.attempt(*diff, objects=applied)
        return answer.done and not answer.output + answer.complaint

    assert "1234" in kubectl.attempt(*diff, objects=(changed,)).output
    until("there is none, once the first statuses are written", no_difference)


def test_argo_cds_own_comparison_needs_no_ignore_rules(
    api: KubernetesApi, applied: tuple[Manifest, ...]
) -> None:
    """Without server-side diff it lays the manifest over the live object, as a JSON merge patch:
    a default filled in within a list would be a difference for ever."""
    models = [manifest for manifest in applied if manifest["kind"] == MODEL]
    for manifest in models:
        live = api.get(MODEL, manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        assert live is not None
        assert _merged(live, manifest) == live


def test_flux_takes_the_examples_over_and_then_sends_nothing(
    cluster: ClusterAccess, applied: tuple[Manifest, ...], repository: Repository, tmp_path: Path
) -> None:
    """It compares a dry run with the live object; a difference that stays is sent every time."""
    repository.commit(examples=applied)

    with flux(cluster, repository, tmp_path, timeout="1s") as running:
        running.wait("three reconciliations", lambda _: True, after=2)
        first, *others = running.outcomes()

    assert len(first.changed) == len(applied)
    assert [outcome.changed for outcome in others] == [()] * len(others)


def test_a_number_of_replicas_that_an_autoscaler_sets_is_left_alone(
    api: KubernetesApi,
    cluster: ClusterAccess,
    applied: tuple[Manifest, ...],
    repository: Repository,
    tmp_path: Path,
) -> None:
    """Where git has none. The two would scale it up and down for ever."""
    model = next(each for each in applied if each["metadata"]["name"] == "qwen3-8b")
    where = MODEL, model["metadata"]["namespace"], model["metadata"]["name"]
    repository.commit(model=[model])

    with flux(cluster, repository, tmp_path, timeout="1s") as running:
        running.wait("it is Flux's", lambda _: True)
        scaled = {"spec": {"replicas": 3}}
        api.call("PATCH", f"{api.path(*where)}/scale", scaled, "application/merge-patch+json")
        passed = running.wait_more(2, timeout=30)

    live = api.get(*where)
    assert live is not None
    assert live["spec"]["replicas"] == 3
    assert [outcome.changed for outcome in passed] == [(), ()]


def _merged(live: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    old = live if isinstance(live, dict) else {}
    new = {key: _merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {**{key: value for key, value in old.items() if patch.get(key, "") is not None}, **new}
