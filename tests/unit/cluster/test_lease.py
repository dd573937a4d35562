"""Leadership: one at a time, and the one that cannot renew stops first."""

from __future__ import annotations

import asyncio
import copy
from typing import cast

import pytest

from speculative_operator.cluster.client import CONFLICT, Client, Refused
from speculative_operator.cluster.lease import Lease, LeaseLost, LeaseSettings
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.errors import ClusterFault


class Server:
    """Keeps one Lease, refuses a write of what was not read last, and may fail."""

    def __init__(self) -> None:
        self.lease: Manifest | None = None
        self.down = False

    async def read(self, _: Reference) -> Manifest | None:
        self._fail()
        return copy.deepcopy(self.lease)

    async def create(self, manifest: Manifest) -> Manifest:
        self._fail()
        return self._put({**manifest, "metadata": {**manifest["metadata"], "uid": "l1"}})

    async def replace(self, manifest: Manifest) -> Manifest:
        self._fail()
        assert self.lease is not None
        version = self.lease["metadata"]["resourceVersion"]
        if manifest["metadata"]["resourceVersion"] != version:
            raise Refused("PUT", CONFLICT, "Conflict", "changed")
        return self._put(manifest)

    def _fail(self) -> None:
        if self.down:
            raise ClusterFault("the API server is down")

    def _put(self, manifest: Manifest) -> Manifest:
        version = 1 if self.lease is None else int(self.lease["metadata"]["resourceVersion"]) + 1
        metadata = {**manifest["metadata"], "resourceVersion": str(version)}
        self.lease = {**manifest, "metadata": metadata}
        return copy.deepcopy(self.lease)


class Clock:
    """Time that goes on only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def server() -> Server:
    """Without a Lease."""
    return Server()


@pytest.fixture
def clock() -> Clock:
    """At 0."""
    return Clock()


def a_lease(server: Server, clock: Clock, identity: str) -> Lease:
    """One process's view of the Lease."""
    settings = LeaseSettings("system", "operator", identity)
    return Lease(cast(Client, server), settings, clock=clock, sleep=clock.sleep)


async def test_the_first_one_leads_at_once(server: Server, clock: Clock) -> None:
    """It makes the Lease."""
    lease = a_lease(server, clock, "a")

    await lease.acquire()

    assert clock.now == 0
    assert lease.term == ("l1", 1)


async def test_a_second_one_waits_until_the_lease_has_stood_still(
    server: Server, clock: Clock
) -> None:
    """On its own clock, since clocks need not agree."""
    await a_lease(server, clock, "a").acquire()
    second = a_lease(server, clock, "b")

    await second.acquire()

    assert clock.now >= LeaseSettings("", "", "").duration
    assert second.term == ("l1", 2)


async def test_a_released_lease_is_taken_at_once(server: Server, clock: Clock) -> None:
    """An upgrade of the operator costs no pause."""
    first = a_lease(server, clock, "a")
    await first.acquire()
    await first.release()
    second = a_lease(server, clock, "b")

    await second.acquire()

    assert clock.now == 0
    assert first.term is None


async def test_a_restarted_holder_leads_at_once(server: Server, clock: Clock) -> None:
    """The same pod comes back under the same name."""
    await a_lease(server, clock, "a").acquire()
    again = a_lease(server, clock, "a")

    await again.acquire()

    assert clock.now == 0


async def test_a_holder_whose_lease_was_taken_stops(server: Server, clock: Clock) -> None:
    """Two that write would fight."""
    first = a_lease(server, clock, "a")
    await first.acquire()
    await a_lease(server, clock, "b").acquire()

    with pytest.raises(LeaseLost, match="somebody else has taken"):
        await first.keep()


async def test_a_holder_that_cannot_renew_stops_before_another_may_lead(
    server: Server, clock: Clock
) -> None:
    """Whether the API server is down or only the way to it."""
    lease = a_lease(server, clock, "a")
    await lease.acquire()
    server.down = True

    with pytest.raises(LeaseLost, match="not renewed for"):
        await lease.keep()

    assert clock.now < LeaseSettings("", "", "").duration


async def test_a_short_outage_is_survived(server: Server, clock: Clock) -> None:
    """One failed renewal is none."""
    lease = a_lease(server, clock, "a")
    await lease.acquire()
    server.down = True
    keeping = asyncio.create_task(lease.keep())
    while clock.now < LeaseSettings("", "", "").pause * 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    server.down = False
    before = clock.now
    while clock.now < before + LeaseSettings("", "", "").duration * 3:  # noqa: ASYNC110
        await asyncio.sleep(0)

    assert not keeping.done()
    keeping.cancel()
