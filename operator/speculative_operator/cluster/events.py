"""Kubernetes Events on models: what changed, told once.

They are sent in the background from a bounded queue, since nothing waits for them and a lost one
changes nothing. The same words about the same model are not repeated within a quarter of an hour.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from speculative_operator.api.names import FIELD_MANAGER
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import MODEL, RESOURCES, Manifest, Reference
from speculative_operator.cluster.queue import Clock
from speculative_operator.errors import ClusterFault

QUIET_SECONDS: Final = 900.0
MOST_WAITING: Final = 1000
MOST_REMEMBERED: Final = 5000
LONGEST_NOTE: Final = 1024
"""The API server refuses a longer note."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Event:
    """One thing to tell. `warning` is for what the user should look at."""

    model: Reference
    uid: str
    reason: str
    message: str
    warning: bool = False


class EventRecorder:
    """Sends each Event once."""

    def __init__(self, client: Client, *, instance: str, clock: Clock = time.monotonic) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)
        self._told: OrderedDict[Event, float] = OrderedDict()

    def tell(self, event: Event) -> None:
        """Queues the Event unless it was told lately, or too many wait already."""
        now = self._clock()
        if now - self._told.get(event, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._told[event] = now
        self._told.move_to_end(event)
        while len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)
        try:
            self._waiting.put_nowait(event)
        except asyncio.QueueFull:
            logger.warning("Event dropped, %d are waiting: %s", MOST_WAITING, event)

    async def run(self) -> None:
        """Sends what waits, one at a time, until cancelled."""
        while True:
            event = await self._waiting.get()
            try:
                await self._client.create(self._manifest(event))
            except ClusterFault as fault:
                logger.warning("Event not sent: %s", fault)

    def _manifest(self, event: Event) -> Manifest:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "apiVersion": RESOURCES["Event"].api_version,
            "kind": "Event",
            "metadata": {
                "name": f"{event.model.name[:200]}.{uuid.uuid4().hex[:16]}",
                "namespace": event.model.namespace,
            },
            "eventTime": now,
            "reportingController": f"speculation.dev/{FIELD_MANAGER}",
            "reportingInstance": self._instance,
            "action": "Reconcile",
            "reason": event.reason,
            "note": event.message[:LONGEST_NOTE],
            "type": "Warning" if event.warning else "Normal",
            "regarding": {
                "apiVersion": MODEL.api_version,
                "kind": event.model.kind,
                "namespace": event.model.namespace,
                "name": event.model.name,
                "uid": event.uid,
            },
        }
