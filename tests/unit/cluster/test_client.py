"""Requests to an API server: what goes out, and what is held back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.errors import ClusterFault

POD = {"namespace": "prod", "name": "qwen", "uid": "u1"}
SERVICE: Manifest = {"kind": "Service", "metadata": {"namespace": "prod", "name": "qwen"}}


class NotNow(ClusterFault):
    """What the guard of these tests raises."""


def refuse() -> None:
    raise NotNow("not now")


@pytest.fixture
def received() -> list[str]:
    """Methods of the requests that have reached the server."""
    return []


@pytest.fixture
async def client(received: list[str]) -> AsyncIterator[Client]:
    """Of a server that answers everything with an object without content."""

    async def answer(request: web.Request) -> web.Response:
        received.append(request.method)
        return web.json_response({"metadata": {}, "items": []})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server:
        configuration = Configuration()
        configuration.host = str(server.make_url("")).rstrip("/")
        async with Client(configuration) as made:
            yield made


async def test_a_guard_holds_back_every_write_and_no_read(
    client: Client, received: list[str]
) -> None:
    """A verb that is forgotten here would write without the Lease."""
    guarded = client.guarded(refuse)
    for write in (
        guarded.create(SERVICE),
        guarded.apply(SERVICE),
        guarded.merge("Pod", POD, {}),
        guarded.replace(SERVICE),
        guarded.book_fields({**SERVICE, "metadata": {**POD, "resourceVersion": "1"}}, []),
        guarded.delete("Pod", POD),
    ):
        with pytest.raises(NotNow):
            await write
    assert received == []

    await guarded.read(Reference("Service", "prod", "qwen"))
    await guarded.list_metadata("Service", None, "")
    await client.create(SERVICE)

    assert received == ["GET", "GET", "POST"]


async def test_a_guard_that_lets_pass_is_not_seen(client: Client, received: list[str]) -> None:
    """It is asked before each write."""
    asked: list[int] = []
    guarded = client.guarded(lambda: asked.append(1))

    await guarded.create(SERVICE)
    await guarded.delete("Pod", POD)

    assert received == ["POST", "DELETE"]
    assert len(asked) == 2
