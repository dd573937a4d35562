"""Counting free GPUs, where the installation allows reading nodes and pods of everybody.

Nothing is watched: it is asked when a rollout is about to start one pod more and while a pod waits
for a node, and an answer holds for some seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.errors import ClusterFault
from speculative_operator.plan.capacity import (
    Stock,
    Template,
    accepts,
    label_selectors,
    need_of,
    stock,
)

HOLDS_SECONDS: Final = 10.0
MOST_NODES: Final = 64
"""With more that fit nothing is counted: the scheduler then tells soon enough."""

HOLDING: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that hold what they ask for."""

logger = logging.getLogger(__name__)


@dataclass
class Capacity:
    """Counts over the API. An answer of None means that nothing is known."""

    client: Client
    clock: Callable[[], float]
    _known: dict[str, tuple[float, Stock | None]] = field(default_factory=dict)

    async def stock(self, key: str, template: Template) -> Stock | None:
        """Free GPUs for a pod of revision `key`. Where they cannot be read, the log says why."""
        now = self.clock()
        self._known = {k: known for k, known in self._known.items() if now < known[0]}
        if key not in self._known:
            try:
                found = await self._count(template)
            except ClusterFault as fault:
                logger.warning("free GPUs cannot be counted: %s", fault)
                found = None
            self._known[key] = (now + HOLDS_SECONDS, found)
        return self._known[key][1]

    async def _count(self, template: Template) -> Stock | None:
        need = need_of(template)
        nodes: dict[str, Manifest] = {}
        for selector in label_selectors(template):
            for node in await self.client.select("Node", {"labelSelector": selector}):
                if accepts(node, template):
                    nodes[node["metadata"]["name"]] = node
        if len(nodes) > MOST_NODES:
            return None
        pods = [
            await self.client.select("Pod", {"fieldSelector": f"spec.nodeName={name},{HOLDING}"})
            for name in nodes
        ]
        return stock(need, zip(nodes.values(), pods, strict=True))
