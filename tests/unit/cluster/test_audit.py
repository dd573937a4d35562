"""Copies against the API server's own list: what is gone, what was missed, when all was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from speculative_operator.cluster.audit import (
    PATIENCE_SECONDS,
    Scope,
    audit,
    still_unseen,
    until_complete,
)
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.errors import ClusterFault

SERVICES = Scope(selectors=(("Service", "ours"),), namespaces=(None,))
EVERYWHERE = Scope(selectors=(("SpeculativeModel", ""), ("Service", "ours")), namespaces=(None,))


def thing(name: str, *, version: int = 1, uid: str = "", namespace: str = "prod") -> Manifest:
    """A Service as a watch or a list shows it."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"kind": "Service", "metadata": metadata}


class ApiServer:
    """Lists what it holds. `meanwhile` is called whenever a list was made."""

    def __init__(self) -> None:
        self.objects: list[Manifest] = []
        self.asked: list[tuple[str, str | None, str]] = []
        self.faults = 0
        self.meanwhile: Callable[[], object] = lambda: None

    async def list_metadata(
        self, kind: str, namespace: str | None, selector: str
    ) -> list[Manifest]:
        self.asked.append((kind, namespace, selector))
        if self.faults:
            self.faults -= 1
            raise ClusterFault("the API server is down")
        found = [
            item
            for item in self.objects
            if item["kind"] == kind and namespace in (None, item["metadata"]["namespace"])
        ]
        self.meanwhile()
        return found


@pytest.fixture
def server() -> ApiServer:
    """One without objects."""
    return ApiServer()


@pytest.fixture
def cache() -> Cache:
    """One that has seen nothing."""
    return Cache()


def as_client(server: ApiServer) -> Client:
    return cast(Client, server)


async def test_what_is_listed_and_was_seen_is_in_order(server: ApiServer, cache: Cache) -> None:
    """A copy may be newer than the list, never older."""
    server.objects = [thing("a", version=3), thing("b", version=3)]
    cache.put(thing("a", version=3))
    cache.put(thing("b", version=4))

    findings = await audit(as_client(server), cache, EVERYWHERE)

    assert (findings.gone, findings.unseen) == ((), ())


async def test_a_copy_of_what_is_not_listed_is_gone(server: ApiServer, cache: Cache) -> None:
    """After a gap kopf lists anew and never tells of what was deleted meanwhile."""
    cache.put(thing("a"))

    (gone,) = (await audit(as_client(server), cache, EVERYWHERE)).gone

    assert gone.reference == Reference("Service", "prod", "a")


async def test_a_copy_whose_name_is_another_objects_by_now_is_gone(
    server: ApiServer, cache: Cache
) -> None:
    """Deleted and made anew: the name alone tells nothing."""
    cache.put(thing("a", uid="first"))
    server.objects = [thing("a", uid="second", version=9)]

    findings = await audit(as_client(server), cache, EVERYWHERE)

    assert [copy.uid for copy in findings.gone] == ["first"]
    assert findings.unseen == ((Reference("Service", "prod", "a"), 9),)


async def test_what_changes_during_the_listing_is_not_called_gone(
    server: ApiServer, cache: Cache
) -> None:
    """The list was made before; the watch knows better."""
    cache.put(thing("a", uid="first"))
    server.meanwhile = lambda: cache.put(thing("a", uid="second", version=2))

    assert (await audit(as_client(server), cache, SERVICES)).gone == ()


async def test_copies_of_other_namespaces_are_not_looked_for(
    server: ApiServer, cache: Cache
) -> None:
    """A list of one namespace says nothing of the others."""
    cache.put(thing("a", namespace="prod"))
    cache.put(thing("a", namespace="lab"))
    scope = Scope(selectors=(("Service", "ours"),), namespaces=("prod", "lab"))
    server.objects = [thing("a", namespace="lab")]

    (gone,) = (await audit(as_client(server), cache, scope)).gone

    assert gone.reference.namespace == "prod"
    assert server.asked == [("Service", "prod", "ours"), ("Service", "lab", "ours")]


async def test_what_we_have_deleted_and_a_finalizer_holds_is_not_called_unseen(
    server: ApiServer, cache: Cache
) -> None:
    """It is listed as long as the finalizer stands, and a restart would cure nothing."""
    cache.put(thing("a"))
    cache.drop(Reference("Service", "prod", "a"), "uid-a")
    server.objects = [thing("a", version=2)]

    findings = await audit(as_client(server), cache, SERVICES)

    assert (findings.gone, findings.unseen) == ((), ())


def test_an_object_is_unseen_until_its_copy_is_as_new(cache: Cache) -> None:
    """An older copy is what a broken watch leaves."""
    where = Reference("Service", "prod", "a")
    cache.put(thing("a", version=1))

    assert still_unseen(cache, [(where, 2)]) == [(where, 2)]
    cache.put(thing("a", version=2))
    assert still_unseen(cache, [(where, 2)]) == []


async def test_the_start_waits_until_all_that_is_listed_was_seen(
    server: ApiServer, cache: Cache
) -> None:
    """Before, a model would be rendered without its recorded revisions."""
    server.objects = [thing("a", version=5)]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            cache.put(thing("a", version=5))

    await until_complete(as_client(server), cache, EVERYWHERE, sleep=sleep)

    assert len(slept) == 3
    assert len(server.asked) == len(EVERYWHERE.selectors)


async def test_the_start_lists_anew_when_something_listed_never_shows(
    server: ApiServer, cache: Cache
) -> None:
    """It may have been deleted since."""
    server.objects = [thing("a")]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if sum(slept) >= PATIENCE_SECONDS:
            server.objects = []

    await until_complete(as_client(server), cache, EVERYWHERE, sleep=sleep)

    assert len(server.asked) == 2 * len(EVERYWHERE.selectors)


async def test_whoever_has_watched_for_long_forgets_what_is_gone(
    server: ApiServer, cache: Cache
) -> None:
    """No watch tells of what was deleted while it had broken, and a standby never looked."""
    cache.put(thing("a"))
    cache.put(thing("b"))
    server.objects = [thing("b")]

    await until_complete(as_client(server), cache, EVERYWHERE)

    assert [copy.reference.name for copy in cache.of_kind("Service")] == ["b"]


async def test_the_start_waits_for_an_api_server_that_is_down(
    server: ApiServer, cache: Cache
) -> None:
    """Ending the process would only add restarts to the trouble."""
    server.faults = 2
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await until_complete(as_client(server), cache, EVERYWHERE, sleep=sleep)

    assert slept == [PATIENCE_SECONDS] * 2
