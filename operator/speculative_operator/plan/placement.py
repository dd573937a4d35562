"""On which nodes an engine may run: those with one of the wanted GPUs, told by device id first.

Which labels a node has depends on how AMD's labeller was installed: `amd.com/gpu.<kind>` or its
beta form, product names only under gpu-operator, and one label per value with a count, without the
plain one, from older labellers and where GPUs differ. So the terms are alternatives, the likeliest
first, and the others count only where the node has no plain device id. Only a node of equal GPUs
has a label for their partitions, so those are looked at beside a plain label only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from speculative_operator.api.hardware import AcceleratorSpec
from speculative_operator.plan.products import ACCELERATORS

PREFIXES = ("amd.com/gpu", "beta.amd.com/gpu")
WHOLE_GPU = "amd.com/gpu"
"""The resource name that partitions of a homogeneous node have too."""

PARTITION_LABELS = ("amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition")
"""The labeller's dialect, and that of older ones and of AMD's documentation."""

PARTITIONS = tuple(
    f"{compute}_nps{memory}"
    for compute, memories in (("dpx", (1, 2)), ("qpx", (1, 2, 4)), ("cpx", (1, 2, 4, 8)))
    for memory in memories
)
"""Modes in which one device is a part of a GPU."""

GPU_TOLERATION = {"key": "amd.com/gpu", "operator": "Exists"}

Requirement = Mapping[str, Any]


@dataclass(frozen=True)
class Placement:
    """A pod's node affinity, node selector and tolerations, in the pod's own form."""

    terms: tuple[tuple[Requirement, ...], ...]
    """Alternatives; all requirements of one must hold."""
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]


def placement(spec: AcceleratorSpec) -> Placement:
    """Where one replica may run."""
    listed = (
        toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
        for toleration in spec.tolerations
    )
    return Placement(
        terms=tuple(_terms(spec)),
        node_selector=spec.node_selector,
        tolerations=(GPU_TOLERATION, *(t for t in listed if t != GPU_TOLERATION)),
    )


def _terms(spec: AcceleratorSpec) -> Iterator[tuple[Requirement, ...]]:
    accelerators = [ACCELERATORS[product] for product in sorted(set(spec.products))]
    ids = [device for accelerator in accelerators for device in accelerator.device_ids]
    names = [name for accelerator in accelerators for name in accelerator.product_names]
    whole = tuple(_whole_gpus(spec))
    untold = [{"key": f"{prefix}.device-id", "operator": "DoesNotExist"} for prefix in PREFIXES]
    for prefix in PREFIXES:
        yield (_among(f"{prefix}.device-id", ids), *whole)
    for prefix in PREFIXES:
        yield (_among(f"{prefix}.product-name", names), *untold, *whole)
    for prefix in PREFIXES:
        for device in ids:
            yield ({"key": f"{prefix}.device-id.{device}", "operator": "Exists"}, *untold)


def _whole_gpus(spec: AcceleratorSpec) -> Iterator[Requirement]:
    """Keeps off partitioned GPUs, unless a partition is what the resource asks for."""
    chosen = any(key.endswith("compute-memory-partition") for key in spec.node_selector)
    if spec.resource_name == WHOLE_GPU and not chosen:
        for label in PARTITION_LABELS:
            yield {"key": label, "operator": "NotIn", "values": list(PARTITIONS)}


def _among(key: str, values: Iterable[str]) -> Requirement:
    return {"key": key, "operator": "In", "values": list(values)}
