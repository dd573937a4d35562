"""What every module of this room says about objects: manifests, where kinds live, who owns what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from speculative_operator.api.base import GROUP, KIND, PLURAL, VERSION

Manifest = dict[str, Any]
"""An object as the API server's JSON has it. Never changed once it was handed on."""


@dataclass(frozen=True)
class Resource:
    """Where the objects of a kind live."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """As manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None) -> str:
        """The path of the collection; of all namespaces when None."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace is not None else ""
        return f"{root}{inside}/{self.plural}"


MODEL: Final = Resource(GROUP, VERSION, PLURAL, KIND)

RESOURCES: Final[Mapping[str, Resource]] = {
    resource.kind: resource
    for resource in (
        MODEL,
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("apps", "v1", "controllerrevisions", "ControllerRevision"),
        Resource("", "v1", "services", "Service"),
        Resource("", "v1", "serviceaccounts", "ServiceAccount"),
        Resource("", "v1", "configmaps", "ConfigMap"),
        Resource("", "v1", "pods", "Pod"),
        Resource("", "v1", "nodes", "Node"),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        Resource("events.k8s.io", "v1", "events", "Event"),
        Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    )
}

CHILD_KINDS: Final = (
    "ControllerRevision",
    "Deployment",
    "Service",
    "ServiceAccount",
    "ConfigMap",
    "PodDisruptionBudget",
)
"""What a model owns directly. Pods are owned by ReplicaSets, and found by their labels."""


def controller_of(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner reference of the controller, if the object has one."""
    references = manifest.get("metadata", {}).get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


@dataclass(frozen=True, slots=True)
class Reference:
    """Which object, by name; as messages name it: `Service prod/qwen`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def reference_of(manifest: Mapping[str, Any]) -> Reference:
    """The name of an object that has its kind written in it."""
    metadata = manifest["metadata"]
    return Reference(manifest["kind"], metadata.get("namespace", ""), metadata["name"])
