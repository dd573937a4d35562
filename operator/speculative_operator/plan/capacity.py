"""Free GPUs, counted: what the nodes that fit an engine offer, less what pods ask for. Pure.

Only GPUs are counted. Whether CPU, memory or a volume stand in the way is the scheduler's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CLOSEST = 3
"""Nodes that a message names."""

SELECTOR_FORMS: Mapping[str, str] = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}
"""A requirement of a node affinity as a label selector: both mean the same of a missing label."""

KEEPING_OFF = frozenset({"NoSchedule", "NoExecute"})

Template = Mapping[str, Any]
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Need:
    """The GPUs of one pod."""

    resource: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.resource}"


@dataclass(frozen=True)
class NodeGpus:
    """GPUs of one node that the pod may run on."""

    name: str
    offered: int
    """Allocatable: healthy ones."""
    taken: int

    @property
    def free(self) -> int:
        return max(0, self.offered - self.taken)

    def __str__(self) -> str:
        return f"{self.name} has {self.free} of {self.offered} free"


@dataclass(frozen=True)
class Stock:
    """All nodes on which a pod may run, that with most free GPUs first."""

    need: Need
    nodes: tuple[NodeGpus, ...]

    @property
    def fits(self) -> bool:
        """Whether the GPUs of one pod are free now."""
        return any(node.free >= self.need.count for node in self.nodes)

    @property
    def ever(self) -> bool:
        """Whether they could be, if other pods went."""
        return any(node.offered >= self.need.count for node in self.nodes)

    def __str__(self) -> str:
        if not self.nodes:
            return "no node has the labels of accelerator.products and accepts the pod"
        return "; ".join(str(node) for node in self.nodes[:CLOSEST])


def need_of(template: Template) -> Need:
    """What a recorded pod template asks for."""
    requests = (_requests(container) for container in template["spec"]["containers"])
    found = ((name, int(n)) for asked in requests for name, n in asked.items() if _is_gpu(name))
    return Need(*next(found, ("amd.com/gpu", 0)))


def label_selectors(template: Template) -> Iterator[str]:
    """The nodes that its node affinity and node selector allow: each text is one alternative."""
    pod = template["spec"]
    exact = [f"{key}={value}" for key, value in pod.get("nodeSelector", {}).items()]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for term in pod["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]:
        parts = (
            SELECTOR_FORMS[each["operator"]].format(
                key=each["key"], values=",".join(each.get("values", ()))
            )
            for each in term["matchExpressions"]
        )
        yield ",".join((*parts, *exact))


def accepts(node: Object, template: Template) -> bool:
    """Whether the pod tolerates what keeps pods off the node; a cordon is a taint, too."""
    tolerations = template["spec"].get("tolerations", ())
    taints = node["spec"].get("taints") or ()
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint["effect"] in KEEPING_OFF
    )


def offered(node: Object, resource: str) -> int:
    """What the node has for pods: devices that are unhealthy are not among them."""
    return int(node["status"].get("allocatable", {}).get(resource, 0))


def stock(need: Need, nodes: Iterable[tuple[Object, Iterable[Object]]]) -> Stock:
    """Of nodes with the pods on them that have not ended: a Terminating pod holds its GPUs."""
    counted = [
        NodeGpus(
            node["metadata"]["name"],
            offered(node, need.resource),
            sum(_taken(pod, need.resource) for pod in pods),
        )
        for node, pods in nodes
    ]
    return Stock(need, tuple(sorted(counted, key=lambda node: (-node.free, node.name))))


def _taken(pod: Object, resource: str) -> int:
    """An init container has its GPUs before the others have theirs, so the most counts."""
    spec = pod["spec"]
    running = sum(int(_requests(c).get(resource, 0)) for c in spec["containers"])
    first = (int(_requests(c).get(resource, 0)) for c in spec.get("initContainers") or ())
    return max(running, *first, 0)


def _requests(container: Object) -> Mapping[str, str]:
    requests: Mapping[str, str] = container.get("resources", {}).get("requests") or {}
    return requests


def _is_gpu(resource: str) -> bool:
    return resource.startswith("amd.com/")


def _tolerates(toleration: Object, taint: Object) -> bool:
    key, operator = toleration.get("key"), toleration.get("operator", "Equal")
    same_effect = toleration.get("effect") in (None, "", taint["effect"])
    same_key = key == taint["key"] or (key in (None, "") and operator == "Exists")
    same_value = operator == "Exists" or toleration.get("value", "") == taint.get("value", "")
    return same_effect and same_key and same_value
