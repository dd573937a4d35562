"""Leadership by a Lease: one operator acts, and one that cannot renew in time must stop.

As in client-go: a holder counts as gone once its Lease has not changed for `duration` seconds on
our own clock, so clocks need not agree. A holder may write for `deadline` seconds after it sent the
last renewal that was answered, which ends before anybody else may take over; a process that was
frozen meanwhile finds that out before its first write.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from speculative_operator.cluster.client import CONFLICT, FORBIDDEN, NOT_FOUND, Client, Refused
from speculative_operator.cluster.manifests import RESOURCES, Manifest, Reference
from speculative_operator.cluster.queue import Clock
from speculative_operator.errors import ClusterFault

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseSettings:
    """Which Lease, who asks for it, and how long things may take, in seconds.

    pause    between two renewals
    look     between two looks of a standby, and from a failed renewal to the next: whoever waits
             takes over at most so long after the Lease has run out
    request  for one try, so that a connection that is dead leaves time for another one
    """

    namespace: str
    name: str
    identity: str
    duration: float = 30.0
    deadline: float = 20.0
    pause: float = 5.0
    look: float = 1.0
    request: float = 10.0


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
        self._renewed_at: float | None = None
        self._trouble = "the API server has not answered yet"

    def unknown(self) -> str:
        """Why it is not known who leads; empty once the API server has told of the Lease."""
        return self._trouble if self._seen is None else ""

    @property
    def term(self) -> tuple[str, int] | None:
        """Which Lease and which term of it this process leads in; None when it does not."""
        if self._seen is None or not self._leads():
            return None
        return self._seen["metadata"]["uid"], int(self._seen["spec"].get("leaseTransitions", 0))

    def must_lead(self) -> None:
        """To be called before each write. Raises LeaseLost unless this process leads."""
        if not self._leads():
            raise LeaseLost(f"not leading by the Lease {self._settings.name}: nothing is written")

    async def acquire(self) -> None:
        """Returns once this process leads."""
        while not await self._attempt_within(self._settings.request):
            await self._sleep(min(self._settings.look, self._left() or self._settings.look))
        logger.info("leading", extra={"lease": self._settings.name, "term": self.term})

    async def keep(self) -> None:
        """Renews until cancelled; raises LeaseLost when it is taken or could not be renewed."""
        wait = self._settings.pause
        while True:
            await self._sleep(wait)
            if self._leads() and await self._renew_in_time():
                wait = self._settings.pause
                continue
            wait = self._settings.look
            if self._seen is None or not self._holds(self._seen):
                raise self._lost("somebody else has taken or deleted the Lease")
            if not self._leads():
                raise self._lost(f"the Lease was not renewed for {self._settings.deadline:.0f} s")

    async def release(self) -> None:
        """Lets the next one lead at once, if this one leads."""
        if self._seen is None or not self._leads():
            return
        self._renewed_at = None
        lease = self._lease(self._seen, holder="", duration=1)
        try:
            async with asyncio.timeout(self._settings.request):
                self._look(await self._client.replace(lease))
        except (ClusterFault, TimeoutError) as fault:
            logger.warning("Lease not released: %s", fault or "no answer")

    def _leads(self) -> bool:
        """Whether nobody else can have taken the Lease since this process renewed it."""
        at = self._renewed_at
        return at is not None and self._clock() - at < self._settings.deadline

    def _lost(self, why: str) -> LeaseLost:
        self._renewed_at = None
        logger.error("no longer leading, so this process ends: %s", why)
        return LeaseLost(why)

    async def _renew_in_time(self) -> bool:
        assert self._renewed_at is not None  # noqa: S101 - asked while it leads
        left = self._settings.deadline - (self._clock() - self._renewed_at)
        return await self._attempt_within(min(left, self._settings.request))

    async def _attempt_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._attempt()
        except TimeoutError:
            return False

    async def _attempt(self) -> bool:
        """One try to take or renew; False while another one holds it or the API server fails."""
        sent_at = self._clock()  # an answer may lie unread for as long as the process stands still
        try:
            taken = await self._take_or_renew()
        except ClusterFault as fault:
            self._complain(fault)
            return False
        self._trouble = ""
        if taken:
            self._renewed_at = sent_at
        return taken

    async def _take_or_renew(self) -> bool:
        if self._seen is None or not self._holds(self._seen):
            await self._read_or_create()
            if not self._free():
                return False
        assert self._seen is not None  # noqa: S101 - it was read
        try:
            lease = self._lease(self._seen, holder=self._settings.identity)
            self._look(await self._client.replace(lease))
        except Refused as refusal:
            if refusal.status == NOT_FOUND:
                self._seen = None
            elif refusal.status == CONFLICT:
                await self._read_or_create()
            else:
                raise
            return False
        return True

    async def _read_or_create(self) -> None:
        where = Reference(RESOURCES["Lease"].kind, self._settings.namespace, self._settings.name)
        found = await self._client.read(where)
        if found is None and self._seen is not None and not self._free():
            return  # somebody deleted it, of which its holder may not know yet
        self._look(found or await self._create())

    async def _create(self) -> Manifest:
        try:
            return await self._client.create(self._new())
        except Refused as refusal:
            if refusal.status != CONFLICT:
                raise
            raise ClusterFault("another process has just made it") from refusal

    def _look(self, lease: Manifest) -> None:
        if self._seen is None or _version(self._seen) != _version(lease):
            self._seen, self._seen_at = lease, self._clock()

    def _free(self) -> bool:
        assert self._seen is not None  # noqa: S101 - asked after _look
        spec = self._seen["spec"]
        return not spec.get("holderIdentity") or self._holds(self._seen) or self._left() <= 0

    def _left(self) -> float:
        """Seconds until the Lease that was seen has run out."""
        if self._seen is None:
            return self._settings.duration
        lasts = float(self._seen["spec"].get("leaseDurationSeconds", self._settings.duration))
        return max(0.0, lasts - (self._clock() - self._seen_at))

    def _holds(self, lease: Manifest) -> bool:
        return bool(lease["spec"].get("holderIdentity") == self._settings.identity)

    def _complain(self, fault: ClusterFault) -> None:
        """Once for each kind of trouble."""
        words = str(fault)
        if isinstance(fault, Refused) and fault.status == FORBIDDEN:
            words += (
                ". Without the Lease this operator does nothing. Grant its service account the "
                f"verbs get, create and update on leases.{RESOURCES['Lease'].group} in namespace "
                f"{self._settings.namespace}, as the chart's Role {self._settings.name}-lease does"
            )
        if words != self._trouble:
            self._trouble = words
            logger.warning("Lease: %s", words)

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
