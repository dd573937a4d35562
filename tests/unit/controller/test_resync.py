"""The resync: every model again, what was missed, and a stale watch as the end."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from speculative_operator.cluster.audit import Scope
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.resync import (
    CATCHING_UP_SECONDS,
    LISTING_SECONDS,
    RESYNC_SECONDS,
    WatchStale,
    resync,
)
from speculative_operator.errors import ClusterFault

SCOPE = Scope(selectors=(("SpeculativeModel", ""),), namespaces=(None,))


def model(name: str, version: int = 1) -> Manifest:
    """A model as a watch or a list shows it."""
    metadata = {
        "name": name,
        "namespace": "prod",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"kind": "SpeculativeModel", "metadata": metadata}


class Run:
    """A resync over a server that lists `objects`; it is cancelled at its third sleep.

    The watch tells of `late` while it is given time to catch up.
    """

    def __init__(self) -> None:
        self.objects: list[Manifest] = []
        self.cache = Cache()
        self.again: list[str] = []
        self.slept: list[float] = []
        self.late: list[Manifest] = []
        self.down = False

    async def list_metadata(self, *_: object) -> list[Manifest]:
        if self.down:
            raise ClusterFault("the API server is down")
        return self.objects

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds == CATCHING_UP_SECONDS:
            for known in self.late:
                self.cache.put(known)
        if len(self.slept) > 2:
            raise asyncio.CancelledError

    async def go(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            await self.until_error()

    async def until_error(self) -> None:
        await resync(cast(Client, self), self.cache, SCOPE, self._look_again, sleep=self.sleep)

    def _look_again(self, reference: Reference) -> None:
        self.again.append(reference.name)


@pytest.fixture
def run() -> Run:
    """One whose copies are what the API server has: two models."""
    made = Run()
    made.objects = [model("a"), model("b")]
    for known in made.objects:
        made.cache.put(known)
    return made


async def test_every_model_is_looked_at_again(run: Run) -> None:
    """Whatever an event may have missed is found in the end."""
    await run.go()

    assert run.again == ["a", "b", "a", "b"]
    assert run.slept == [RESYNC_SECONDS] * 3


async def test_a_model_that_is_gone_is_forgotten(run: Run) -> None:
    """Its last pass lets go of what is remembered of it."""
    run.objects = [model("a")]

    await run.go()

    assert run.again[:2] == ["b", "a"]
    assert [known.name for known in run.cache.models()] == ["a"]


async def test_without_an_answer_it_soon_tries_again(run: Run) -> None:
    """No answer is no sign that anything is gone."""
    run.down = True

    await run.go()

    assert run.again == []
    assert len(list(run.cache.models())) == 2
    assert run.slept == [RESYNC_SECONDS, LISTING_SECONDS, LISTING_SECONDS]


async def test_what_went_while_a_watch_was_broken_is_found_once_it_lists_anew(run: Run) -> None:
    """kopf never tells of it, and half an hour without a Service is an outage."""
    run.objects = [model("a")]

    async def sleep(seconds: float) -> None:
        run.slept.append(seconds)
        if seconds == RESYNC_SECONDS:
            await asyncio.sleep(0)
            run.cache.listed.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if len(run.slept) > 3:
            raise asyncio.CancelledError

    run.sleep = sleep  # type: ignore[method-assign]
    await run.go()

    assert run.slept == [RESYNC_SECONDS, LISTING_SECONDS] * 2
    assert run.again[:2] == ["b", "a"]


async def test_a_watch_that_is_only_late_may_go_on(run: Run) -> None:
    """It told of the change within the time that it is given."""
    run.objects = [model("a"), model("b", version=7)]
    run.late = [model("b", version=7)]

    await run.go()

    assert run.slept[:2] == [RESYNC_SECONDS, CATCHING_UP_SECONDS]


async def test_a_watch_that_tells_nothing_ends_the_process(run: Run) -> None:
    """Its stream is open, so nothing else would ever find out; a restart cures it."""
    run.objects = [model("a"), model("b", version=7)]

    with pytest.raises(WatchStale, match="prod/b changed a minute ago, and no watch has told"):
        await run.until_error()
