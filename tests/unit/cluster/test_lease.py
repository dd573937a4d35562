"""Leadership: one at a time, and the one that cannot renew stops first."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import cast

import pytest

from speculative_operator.cluster.client import (
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    Client,
    Refused,
)
from speculative_operator.cluster.lease import Lease, LeaseLost, LeaseSettings
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.errors import ClusterFault


class Server:
    """Keeps one Lease, refuses a write of what was not read last, and may fail."""

    def __init__(self) -> None:
        self.lease: Manifest | None = None
        self.down = False
        self.forbids = False
        self.made = 0
        self.meanwhile: Callable[[], None] = lambda: None

    async def read(self, _: Reference) -> Manifest | None:
        self._fail()
        return copy.deepcopy(self.lease)

    async def create(self, manifest: Manifest) -> Manifest:
        self._fail()
        if self.lease is not None:
            raise Refused("POST", CONFLICT, "AlreadyExists", "exists")
        self.made += 1
        return self._put({**manifest, "metadata": {**manifest["metadata"], "uid": f"l{self.made}"}})

    async def replace(self, manifest: Manifest) -> Manifest:
        self._fail()
        if self.lease is None:
            raise Refused("PUT", NOT_FOUND, "NotFound", "not found")
        version = self.lease["metadata"]["resourceVersion"]
        if manifest["metadata"]["resourceVersion"] != version:
            raise Refused("PUT", CONFLICT, "Conflict", "changed")
        kept = self._put(manifest)
        self.meanwhile()
        return kept

    def _fail(self) -> None:
        if self.down:
            raise ClusterFault("the API server is down")
        if self.forbids:
            raise Refused("GET", FORBIDDEN, "Forbidden", "leases is forbidden")

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

    with pytest.raises(LeaseLost, match="not renewed for"):
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


async def test_a_holder_whose_lease_somebody_edits_away_stops(server: Server, clock: Clock) -> None:
    """It hears of it with the next renewal."""
    lease = a_lease(server, clock, "a")
    await lease.acquire()
    assert server.lease is not None
    server.lease["spec"]["holderIdentity"] = "b"
    server.lease["metadata"]["resourceVersion"] = "7"

    with pytest.raises(LeaseLost, match="taken or deleted"):
        await lease.keep()

    with pytest.raises(LeaseLost):
        lease.must_lead()


async def test_whoever_waits_takes_over_soon_after_the_lease_has_run_out(
    server: Server, clock: Clock
) -> None:
    """A look at the wrong moment would add a whole pause; engines wait for decisions meanwhile."""
    settings = LeaseSettings("", "", "")
    await a_lease(server, clock, "a").acquire()
    clock.now += 0.9

    await a_lease(server, clock, "b").acquire()

    assert clock.now <= settings.duration + settings.look + 0.9


async def test_a_holder_that_stood_still_may_not_write_once_it_goes_on(
    server: Server, clock: Clock
) -> None:
    """Before any task has had a turn, by its clock alone: another one may lead by now."""
    lease = a_lease(server, clock, "a")
    await lease.acquire()
    lease.must_lead()

    clock.now += LeaseSettings("", "", "").deadline

    with pytest.raises(LeaseLost, match="nothing is written"):
        lease.must_lead()
    assert lease.term is None


async def test_an_answer_that_lay_unread_renews_from_when_it_was_asked_for(
    server: Server, clock: Clock
) -> None:
    """A process that stood still between question and answer has not led all that time."""
    lease = a_lease(server, clock, "a")

    def stand_still() -> None:
        clock.now += 60

    server.meanwhile = stand_still
    await lease.acquire()

    with pytest.raises(LeaseLost):
        lease.must_lead()


async def test_a_lost_lease_is_not_given_back(server: Server, clock: Clock) -> None:
    """It is another one's by now, or nobody can be told."""
    lease = a_lease(server, clock, "a")
    await lease.acquire()
    held = copy.deepcopy(server.lease)
    clock.now += LeaseSettings("", "", "").deadline

    await lease.release()

    assert server.lease == held


async def test_a_deleted_lease_is_no_free_one_for_who_has_seen_its_holder(
    server: Server, clock: Clock
) -> None:
    """The holder learns of it with its next renewal only."""
    first, second = a_lease(server, clock, "a"), a_lease(server, clock, "b")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(0)
    server.lease = None

    with pytest.raises(LeaseLost, match="taken or deleted"):
        await first.keep()
    await waiting

    assert clock.now >= LeaseSettings("", "", "").duration
    assert second.term == ("l2", 1)


async def test_a_renewal_without_an_answer_is_sent_again_in_time(
    server: Server, clock: Clock
) -> None:
    """A connection that died unnoticed must not cost the leadership."""
    hanging = [True]

    class Hanging(Server):
        async def replace(self, manifest: Manifest) -> Manifest:
            if self.lease and self.lease["spec"].get("holderIdentity") and hanging:
                hanging.clear()
                await asyncio.Event().wait()
            return await super().replace(manifest)

    settings = LeaseSettings("system", "operator", "a", request=0.01)
    silent = Hanging()
    lease = Lease(cast(Client, silent), settings, clock=clock, sleep=clock.sleep)
    await lease.acquire()
    assert silent.lease is not None
    first = silent.lease["metadata"]["resourceVersion"]

    keeping = asyncio.create_task(lease.keep())
    while silent.lease["metadata"]["resourceVersion"] == first:  # noqa: ASYNC110
        await asyncio.sleep(0)

    assert clock.now < settings.deadline
    keeping.cancel()


async def test_two_that_start_together_agree_on_one(server: Server, clock: Clock) -> None:
    """One of them makes the Lease first."""
    first, second = a_lease(server, clock, "a"), a_lease(server, clock, "b")
    settings = LeaseSettings("", "", "")

    waiting = [asyncio.create_task(lease.acquire()) for lease in (first, second)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    assert [lease.term for lease in (first, second)].count(None) == 1
    assert clock.now < settings.duration
    for task in waiting:
        task.cancel()


async def test_without_rights_it_says_what_to_grant(
    server: Server, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """On its readiness page and once in the log; it goes on asking."""
    lease = a_lease(server, clock, "a")
    assert lease.unknown() == "the API server has not answered yet"
    server.forbids = True

    with caplog.at_level(logging.WARNING):
        waiting = asyncio.create_task(lease.acquire())
        while clock.now < 10:  # noqa: ASYNC110
            await asyncio.sleep(0)

    words = "verbs get, create and update on leases.coordination.k8s.io in namespace system"
    assert words in lease.unknown()
    assert caplog.text.count(words) == 1
    server.forbids = False
    await waiting
    assert lease.unknown() == ""


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
