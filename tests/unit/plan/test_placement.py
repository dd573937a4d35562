"""Which nodes an engine is scheduled to, by the labels that AMD's labellers really write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from speculative_operator.api.hardware import AcceleratorSpec, Product
from speculative_operator.plan.placement import placement
from speculative_operator.plan.products import ACCELERATORS

Labels = Mapping[str, str]


def fits(labels: Labels, **accelerator: Any) -> bool:
    """Whether a node with these labels satisfies one of the terms, as the scheduler decides it."""
    spec = AcceleratorSpec.model_validate({"products": ["MI300X"], **accelerator})
    return any(all(_holds(one, labels) for one in term) for term in placement(spec).terms)


def _holds(requirement: Mapping[str, Any], labels: Labels) -> bool:
    value = labels.get(requirement["key"])
    match requirement["operator"]:
        case "In":
            return value in requirement["values"]
        case "NotIn":
            return value not in requirement["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(requirement)


@pytest.mark.parametrize(
    "labels",
    [
        {"amd.com/gpu.device-id": "74a1"},
        {"beta.amd.com/gpu.device-id": "74a1"},
        {"amd.com/gpu.device-id.74a1": "4", "amd.com/gpu.device-id.740f": "4"},
        {"beta.amd.com/gpu.device-id.74a1": "8"},
        {"amd.com/gpu.device-id": "74b5"},
        {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
        {"beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X"},
    ],
    ids=["plain", "beta", "counted", "beta counted", "virtual function", "name", "beta name"],
)
def test_a_node_of_the_product_is_found(labels: Labels) -> None:
    """Which labels there are depends on how the labeller was installed."""
    assert fits(labels)


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"amd.com/gpu.device-id": "75a3"},
        {"amd.com/gpu.product-name": "AMD_Instinct_MI355X"},
        {"amd.com/gpu.family": "AI"},
        {"feature.node.kubernetes.io/amd-gpu": "true"},
    ],
    ids=["no label", "another id", "another name", "family alone", "vendor alone"],
)
def test_another_node_is_not(labels: Labels) -> None:
    """The family never tells the product."""
    assert not fits(labels)


def test_the_device_id_is_believed_before_the_name() -> None:
    """Names are what a vendor's board says; the id is what the driver found."""
    labels = {
        "amd.com/gpu.device-id": "75a3",
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X",
    }

    assert not fits(labels)


@pytest.mark.parametrize(
    "label", ["amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition"]
)
def test_a_partition_is_not_taken_for_a_gpu(label: str) -> None:
    """Homogeneous partitions are offered as amd.com/gpu too, with an eighth of the memory."""
    gpu = {"amd.com/gpu.device-id": "74a1"}

    assert not fits({**gpu, label: "cpx_nps4"})
    assert fits({**gpu, label: "spx_nps1"})


def test_a_partition_that_is_asked_for_is_taken() -> None:
    """By its resource name, or by its label."""
    labels = {"amd.com/gpu.device-id": "74a1", "amd.com/compute-memory-partition": "cpx_nps4"}

    assert fits(labels, resourceName="amd.com/cpx_nps4")
    assert fits(labels, nodeSelector={"amd.com/compute-memory-partition": "cpx_nps4"})


def test_any_of_several_products_will_do() -> None:
    """That is what a list of products means."""
    products = ["MI325X", "MI355X"]

    assert fits({"amd.com/gpu.device-id": "74a5"}, products=products)
    assert fits({"amd.com/gpu.device-id": "75a3"}, products=products)
    assert not fits({"amd.com/gpu.device-id": "74a1"}, products=products)


def test_no_device_id_belongs_to_two_products() -> None:
    """Else one of them would be scheduled to the other's nodes."""
    ids = [device for accelerator in ACCELERATORS.values() for device in accelerator.device_ids]

    assert len(ids) == len(set(ids))
    assert set(ACCELERATORS) == set(Product)


def test_the_usual_taint_of_gpu_nodes_is_tolerated() -> None:
    """Clusters taint GPU nodes with it to keep other pods off."""
    spec = AcceleratorSpec.model_validate(
        {"products": ["MI300X"], "tolerations": [{"key": "team", "effect": "NoSchedule"}]}
    )

    assert placement(spec).tolerations == (
        {"key": "amd.com/gpu", "operator": "Exists"},
        {"key": "team", "operator": "Exists", "effect": "NoSchedule"},
    )
