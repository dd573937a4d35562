"""Leadership by a Lease: one operator acts, and one that cannot renew in time must stop.

As in client-go: a holder counts as gone once its Lease has not changed for `duration` seconds on
our own clock, so clocks need not agree. A holder stops when it could not renew for `deadline`
seconds, which is before anybody else may take over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from speculative_operator.cluster.client import CONFLICT, Client, Refused
from speculative_operator.cluster.manifests import RESOURCES, Manifest, Reference
from speculative_operator.cluster.queue import Clock
from speculative_operator.errors import ClusterFault

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseSettings:
    """Which Lease, who asks for it, and how long things may take, in seconds."""

    namespace: str
    name: str
    identity: str
    duration: float = 30.0
    deadline: float = 20.0
    pause: float = 5.0


class LeaseLost(ClusterFault):
    """Somebody else may lead by now: nothing may be written any more."""


class Lease:
    """One Lease that this process wants or holds."""

    def __init__(
        self,
        client: Client,
        settings: LeaseSettings,
        *,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._seen: Manifest | None = None
        self._seen_at = 0.0

    def answered(self) -> bool:
        """Whether the API server has ever answered about it."""
        return self._seen is not None

    @property
    def term(self) -> tuple[str, int] | None:
        """Which Lease and which term of it this process leads in; None when it does not."""
        if self._seen is None or not self._holds(self._seen):
            return None
        return self._seen["metadata"]["uid"], int(self._seen["spec"].get("leaseTransitions", 0))

    async def acquire(self) -> None:
        """Returns once this process leads."""
        while not await self._attempt():
            await self._sleep(self._settings.pause)
        logger.info("leading", extra={"lease": self._settings.name, "term": self.term})

    async def keep(self) -> None:
        """Renews until cancelled; raises LeaseLost when it is taken or could not be renewed."""
        renewed_at = self._clock()
        while True:
            await self._sleep(self._settings.pause)
            left = self._settings.deadline - (self._clock() - renewed_at)
            if await self._attempt_within(left):
                renewed_at = self._clock()
            elif self.term is None:
                raise LeaseLost("somebody else has taken the Lease")
            elif self._clock() - renewed_at >= self._settings.deadline:
                raise LeaseLost(f"the Lease was not renewed for {self._settings.deadline:.0f} s")

    async def release(self) -> None:
        """Lets the next one lead at once."""
        if self._seen is None or not self._holds(self._seen):
            return
        try:
            self._look(await self._client.replace(self._lease(self._seen, holder="", duration=1)))
        except ClusterFault as fault:
            logger.warning("Lease not released: %s", fault)

    async def _attempt_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._attempt()
        except TimeoutError:
            return False

    async def _attempt(self) -> bool:
        """One try to take or renew; False while another one holds it or the API server fails."""
        try:
            if self._seen is None or not self._holds(self._seen):
                self._look(await self._read_or_create())
                if not self._free():
                    return False
            assert self._seen is not None  # noqa: S101 - _look has set it
            lease = self._lease(self._seen, holder=self._settings.identity)
            self._look(await self._client.replace(lease))
        except Refused as refusal:
            if refusal.status == CONFLICT:
                self._look(await self._read_or_create())
                return False
            logger.warning("Lease: %s", refusal)
            return False
        except ClusterFault as fault:
            logger.warning("Lease: %s", fault)
            return False
        return True

    async def _read_or_create(self) -> Manifest:
        where = Reference(RESOURCES["Lease"].kind, self._settings.namespace, self._settings.name)
        found = await self._client.read(where)
        return found if found is not None else await self._client.create(self._new())

    def _look(self, lease: Manifest) -> None:
        if self._seen is None or _version(self._seen) != _version(lease):
            self._seen, self._seen_at = lease, self._clock()

    def _free(self) -> bool:
        assert self._seen is not None  # noqa: S101 - asked after _look
        spec = self._seen["spec"]
        if not spec.get("holderIdentity") or self._holds(self._seen):
            return True
        lasts = float(spec.get("leaseDurationSeconds", self._settings.duration))
        return self._clock() - self._seen_at >= lasts

    def _holds(self, lease: Manifest) -> bool:
        return bool(lease["spec"].get("holderIdentity") == self._settings.identity)

    def _new(self) -> Manifest:
        return {
            "apiVersion": RESOURCES["Lease"].api_version,
            "kind": "Lease",
            "metadata": {"namespace": self._settings.namespace, "name": self._settings.name},
            "spec": {},
        }

    def _lease(self, seen: Manifest, *, holder: str, duration: float | None = None) -> Manifest:
        spec: dict[str, Any] = seen["spec"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        taken_over = bool(holder) and spec.get("holderIdentity") != holder
        return {
            **seen,
            "spec": {
                **spec,
                "holderIdentity": holder,
                "leaseDurationSeconds": int(duration or self._settings.duration),
                "renewTime": now,
                "acquireTime": now if taken_over else spec.get("acquireTime", now),
                "leaseTransitions": spec.get("leaseTransitions", 0) + taken_over,
            },
        }


def _version(lease: Manifest) -> Any:  # noqa: ANN401 - an opaque string
    return lease["metadata"]["resourceVersion"]
