"""What stands in the cluster for one model at one time, read from the cluster and the engines."""

from __future__ import annotations

import urllib.error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from speculative_operator.api.names import LABEL_MODEL_UID
from tests.support.api import KubernetesApi, Manifest
from tests.support.goodput import page
from tests.support.served import Served

KINDS = ("ConfigMap", "ControllerRevision", "Deployment", "ReplicaSet", "Service", "ServiceAccount")


@dataclass(frozen=True)
class Picture:
    """`objects` are all of the model's by kind, without pods; `pages` are the engines' own by
    pod name, absent where an engine does not answer; `routed` are the pods that the Service's
    EndpointSlices call ready."""

    model: Manifest
    pods: tuple[Manifest, ...]
    objects: Mapping[str, tuple[Manifest, ...]]
    pages: Mapping[str, Mapping[str, Any]]
    routed: frozenset[str]

    @property
    def status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.model.get("status", {})
        return status

    @property
    def uid(self) -> str:
        return str(self.model["metadata"]["uid"])

    def names(self, kind: str) -> set[str]:
        """Of the objects of a kind."""
        return {str(found["metadata"]["name"]) for found in self.objects[kind]}


def take(served: Served) -> Picture:
    """The picture of now."""
    api, namespace, model = served.api, served.namespace, served.resource()
    ours = f"{LABEL_MODEL_UID}={model['metadata']['uid']}"
    pods = tuple(api.all("Pod", namespace, ours))
    return Picture(
        model=model,
        pods=pods,
        objects={kind: tuple(api.all(kind, namespace, ours)) for kind in KINDS},
        pages={
            pod["metadata"]["name"]: found
            for pod in pods
            if (found := _page(pod.get("status", {}).get("podIP"))) is not None
        },
        routed=frozenset(_routed(api, namespace, served.name)),
    )


def _page(address: str | None) -> Mapping[str, Any] | None:
    if address is None:
        return None
    try:
        return page(address)
    except (urllib.error.URLError, OSError, ValueError):
        return None


def _routed(api: KubernetesApi, namespace: str, service: str) -> list[str]:
    return [
        str(endpoint["targetRef"]["name"])
        for found in api.all("EndpointSlice", namespace, f"kubernetes.io/service-name={service}")
        for endpoint in found["endpoints"] or ()
        if endpoint["conditions"].get("ready")
    ]
