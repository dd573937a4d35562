"""Free GPUs as they are counted from nodes and pods."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.plan.capacity import (
    Need,
    accepts,
    label_selectors,
    need_of,
    offered,
    stock,
)
from speculative_operator.plan.model import plan
from speculative_operator.plan.settings import Settings
from speculative_operator.resources.pod_template import pod_template
from tests.unit.plan.builders import a_model

GPU = "amd.com/gpu"


def template(**accelerator: Any) -> Any:
    """The pod of a model with eight MI300X."""
    sections = {"products": ["MI300X"], "count": 8, **accelerator}
    return pod_template(plan(a_model(accelerator=sections), Settings("engine:1", "plugin:1")))


def a_node(name: str, gpus: int, *taints: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {GPU: str(gpus), "cpu": "64"}},
    }


def a_pod(*gpus: int, before: int = 0) -> dict[str, Any]:
    """Its containers ask for so many GPUs, an init container for `before`."""
    asked = [{"resources": {"requests": {GPU: str(n)}}} for n in gpus]
    return {
        "spec": {
            "containers": [*asked, {}],
            "initContainers": [{"resources": {"requests": {GPU: str(before)}}}],
        }
    }


def test_what_a_pod_needs_stands_in_its_template() -> None:
    """The recorded one: the spec may have moved on."""
    assert need_of(template()) == Need(GPU, 8)
    assert str(need_of(template(resourceName="amd.com/cpx_nps4"))) == "8 amd.com/cpx_nps4"


def test_the_affinity_becomes_label_selectors() -> None:
    """The API server then finds the nodes, by the rules of the scheduler."""
    selectors = list(label_selectors(template(nodeSelector={"zone": "a"})))

    assert selectors[0].startswith("amd.com/gpu.device-id in (74a1,74a9,74b5,74bd),")
    assert "amd.com/gpu.compute-memory-partition notin (" in selectors[0]
    assert any("!amd.com/gpu.device-id" in selector for selector in selectors)
    assert all(selector.endswith(",zone=a") for selector in selectors)


def test_what_is_free_is_what_is_offered_less_what_is_asked_for() -> None:
    """Most free first, so that the closest nodes are named first."""
    found = stock(
        Need(GPU, 8),
        [(a_node("a", 8), [a_pod(4)]), (a_node("b", 7), []), (a_node("c", 8), [a_pod(4, 8)])],
    )

    assert str(found) == "b has 7 of 7 free; a has 4 of 8 free; c has 0 of 8 free"
    assert (found.fits, found.ever) == (False, True)
    assert stock(Need(GPU, 8), [(a_node("a", 8), [a_pod(0, before=0)])]).fits


def test_an_init_container_holds_gpus_as_the_others_do() -> None:
    """One after the other, so the most counts."""
    (node,) = stock(Need(GPU, 1), [(a_node("a", 8), [a_pod(2, before=6)])]).nodes

    assert node.taken == 6


def test_nodes_that_could_never_hold_the_pod_are_told_apart() -> None:
    """Waiting would be for ever."""
    assert not stock(Need(GPU, 8), [(a_node("a", 4), [])]).ever
    assert not stock(Need(GPU, 8), []).ever


def test_an_unhealthy_device_is_not_offered() -> None:
    """The kubelet takes it out of what is allocatable."""
    assert offered(a_node("a", 7), GPU) == 7
    assert offered(a_node("a", 7), "amd.com/cpx_nps4") == 0


@pytest.mark.parametrize(
    ("taint", "accepted"),
    [
        ({"key": GPU, "effect": "NoSchedule"}, True),
        ({"key": "amd-gpu-unhealthy", "effect": "NoSchedule"}, False),
        ({"key": "amd-dcm", "value": "up", "effect": "NoExecute"}, False),
        ({"key": "slow", "effect": "PreferNoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, False),
        ({"key": "team", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "b", "effect": "NoSchedule"}, False),
    ],
)
def test_a_node_with_a_taint_counts_only_where_it_is_tolerated(
    taint: dict[str, str], accepted: bool
) -> None:
    """A cordoned or drained node has free GPUs that nobody gets."""
    tolerations = [{"key": "team", "operator": "Equal", "value": "a"}]

    assert accepts(a_node("a", 8, taint), template(tolerations=tolerations)) is accepted
