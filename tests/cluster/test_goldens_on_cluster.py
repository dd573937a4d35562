"""The real API server takes what every example becomes, under enforced restricted pod security."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.kubectl import Kubectl
from tools.golden import GOLDEN


@pytest.fixture
def restricted(kubectl: Kubectl, namespace: str) -> str:
    """A namespace in which a pod that is not restricted is refused."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    return namespace


def manifests(namespace: str) -> tuple[dict[str, Any], ...]:
    """All golden manifests, moved to a namespace of this run's."""
    files = sorted(GOLDEN.glob("*.yaml"))
    found = tuple(one for file in files for one in yaml.safe_load_all(file.read_text()))
    for manifest in found:
        manifest["metadata"]["namespace"] = namespace
    return found


def test_the_api_server_takes_every_manifest_as_it_is(kubectl: Kubectl, restricted: str) -> None:
    """No field is dropped or changed on the way: what is would be repaired for ever."""
    dry = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-o", "yaml")
    wanted = manifests(restricted)
    answer = yaml.safe_load(kubectl(*dry, "-f", "-", objects=wanted))

    losses = {
        (manifest["kind"], manifest["metadata"]["name"]): _loss(taken, manifest)
        for manifest, taken in zip(wanted, answer["items"], strict=True)
    }
    assert {name: loss for name, loss in losses.items() if loss} == {}


def test_every_pod_passes_restricted_pod_security(kubectl: Kubectl, restricted: str) -> None:
    """A Deployment is taken anyway, and then its pods are refused one by one."""
    found = manifests(restricted)
    accounts = tuple(one for one in found if one["kind"] == "ServiceAccount")
    pods = tuple(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": one["metadata"]["name"], "namespace": restricted},
            "spec": one["spec"]["template"]["spec"],
        }
        for one in found
        if one["kind"] == "Deployment"
    )
    for account in accounts:
        del account["metadata"]["ownerReferences"]
    kubectl("create", "-f", "-", objects=accounts)

    dry = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    as_root = {**pods[0], "spec": {**pods[0]["spec"], "securityContext": {"runAsUser": 0}}}
    assert "violates PodSecurity" in kubectl.attempt(*dry, objects=(as_root,)).complaint
    kubectl(*dry, objects=pods)


def _loss(answer: object, wanted: object, where: str = "") -> str | None:
    """Where the answer lacks something that was wanted; what it has beyond is a default."""
    if isinstance(wanted, dict) and isinstance(answer, dict):
        inner = (
            _loss(answer[name], value, f"{where}.{name}")
            if name in answer
            else f"{where}.{name} is gone"
            for name, value in wanted.items()
        )
        return next((loss for loss in inner if loss), None)
    if isinstance(wanted, list) and isinstance(answer, list) and len(wanted) == len(answer):
        pairs = enumerate(zip(answer, wanted, strict=True))
        inner = (_loss(one, other, f"{where}[{number}]") for number, (one, other) in pairs)
        return next((loss for loss in inner if loss), None)
    return None if answer == wanted else f"{where}: {wanted!r} became {answer!r}"
