"""A client that creates what the operator would, and nothing more; and a watch that sees it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from speculative_operator.api.base import GROUP, KIND, VERSION
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.connection import bearer_token
from speculative_operator.cluster.manifests import RESOURCES, Manifest
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.wanted.desired import desire
from speculative_operator.plan.settings import Settings

AT_ONCE = 16
"""Requests that are under way together, as the operator's workers are."""


def model_named(namespace: str, name: str) -> Manifest:
    """A small model; its engines ask for one GPU."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "model": {"source": "hf://Qwen/Qwen3-8B"},
            "speculation": {"method": "eagle3", "draft": {"source": "hf://example/draft"}},
            "accelerator": {"products": ["MI300X"]},
        },
    }


def children_of(model: Manifest, settings: Settings) -> Sequence[Manifest]:
    """What the operator creates for a new model, in its order."""
    metadata = {"uid": "not-created", **model["metadata"]}
    read = SpeculativeModel.model_validate({**model, "metadata": metadata})
    desired = desire(read, Observed(), settings, last_good=None, answering=())
    assert desired.new is not None
    return (desired.new, *desired.before_pods, *desired.pods)


class BareClient:
    """Creates models and children, with nothing to decide, compare or report."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def create(self, namespace: str, name: str) -> int:
        """A model with its children, the Deployment last; how many children there are."""
        model = await self._client.create(model_named(namespace, name))
        *before, deployment = children_of(model, self._settings)
        await asyncio.gather(*(self._create(child) for child in before))
        await self._create(deployment)
        return len(before) + 1

    async def _create(self, child: Manifest) -> None:
        async with self._turns:
            await self._client.create(child)


class Sightings:
    """When a watch first saw each object of a kind, by name, on this process's clock."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.live: dict[str, Manifest] = {}
        self._news = asyncio.Event()

    async def until(self, done: Callable[[], bool], limit: float = 120.0) -> None:
        """Waits until `done()` holds; it is asked after each event."""
        async with asyncio.timeout(limit):
            while not done():
                self._news.clear()
                await self._news.wait()

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of the watch."""
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            self.live.pop(name, None)
            self.seen.pop(name, None)
        else:
            self.live[name] = event["object"]
            self.seen.setdefault(name, time.perf_counter())
        self._news.set()


@asynccontextmanager
async def watching(
    configuration: Configuration, kind: str, namespace: str
) -> AsyncIterator[Sightings]:
    """A raw watch of one kind in one namespace while the context is open."""
    sightings = Sightings()
    rest = RESTClientObject(configuration)
    token = await bearer_token(configuration)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{configuration.host}{RESOURCES[kind].path(namespace)}?watch=true"
    answer = await rest.request(  # type: ignore[no-untyped-call]
        "GET", url, headers=headers, _request_timeout=24 * 3600
    )

    if answer.status != 200:
        raise ConnectionError(f"GET {url}: status {answer.status}")

    async def follow() -> None:
        async for line in answer.response.content:
            sightings.take(json.loads(line))

    try:
        # A watch that breaks ends the group, or its reader would wait for ever.
        async with asyncio.TaskGroup() as group:
            task = group.create_task(follow())
            yield sightings
            task.cancel()
    finally:
        answer.response.close()
        await rest.close()
