"""Counting free GPUs over the API: what is asked, how often, and what a refusal means."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from speculative_operator.cluster.client import FORBIDDEN, Client, Refused
from speculative_operator.controller.seen.capacity import HOLDS_SECONDS, MOST_NODES, Capacity
from speculative_operator.plan.capacity import Stock
from tests.unit.plan.test_capacity import a_node, a_pod, template


class Cluster(Client):
    """Nodes that match the first selector, and the pods on them."""

    def __init__(self, nodes: int = 1, *, forbidden: bool = False) -> None:
        self.nodes = [a_node(f"n{number}", 8) for number in range(nodes)]
        self.forbidden = forbidden
        self.asked: list[str] = []

    async def select(
        self, kind: str, query: Mapping[str, str], namespace: str | None = None
    ) -> list[dict[str, Any]]:
        """The answer to one listing."""
        assert namespace is None
        self.asked.append(kind)
        if self.forbidden:
            raise Refused("GET /api/v1/nodes", FORBIDDEN, "Forbidden", "not allowed")
        if kind == "Pod":
            assert query["fieldSelector"].startswith("spec.nodeName=n")
            return [a_pod(4)]
        first = "amd.com/gpu.device-id in" in query["labelSelector"]
        return self.nodes if first and not query["labelSelector"].startswith("beta") else []


class Clock:
    """Time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def counted(cluster: Cluster, clock: Clock | None = None) -> Stock | None:
    """One answer."""
    return asyncio.run(Capacity(cluster, clock or Clock()).stock("key", template()))


def test_only_pods_of_nodes_that_fit_are_read() -> None:
    """A cluster has many pods that have nothing to do with these GPUs."""
    cluster = Cluster(nodes=2)

    found = counted(cluster)

    assert found is not None
    assert str(found) == "n0 has 4 of 8 free; n1 has 4 of 8 free"
    assert cluster.asked.count("Pod") == 2


def test_an_answer_holds_for_some_seconds() -> None:
    """A pod that waits has many events."""
    cluster, clock = Cluster(), Clock()
    capacity = Capacity(cluster, clock)

    async def ask() -> list[int]:
        asked = []
        for clock.now in (0.0, HOLDS_SECONDS - 1, HOLDS_SECONDS):
            await capacity.stock("key", template())
            asked.append(cluster.asked.count("Pod"))
        return asked

    assert asyncio.run(ask()) == [1, 1, 2]


def test_what_cannot_be_read_or_is_too_much_is_not_known() -> None:
    """Then the scheduler's answer is waited for; nothing fails."""
    assert counted(Cluster(forbidden=True)) is None
    assert counted(Cluster(nodes=MOST_NODES + 1)) is None


def test_a_node_whose_devices_are_all_unhealthy_is_named() -> None:
    """It has the labels; so it is not a wrong product."""
    cluster = Cluster()
    cluster.nodes[0]["status"]["allocatable"] = {}

    found = counted(cluster)

    assert found is not None
    assert str(found) == "n0 has 0 of 0 free"
