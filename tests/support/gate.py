"""A door between an operator and the API server, on which a test may lean.

It forwards plain HTTP to the real API server, with the rights of the kubeconfig, and keeps a record
of every write. A test may shut it, may have it deliver events late and twice, and may have it tell
of each write before the operator hears that it was done.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp
from aiohttp import web
from yarl import URL

from local.access import ClusterAccess
from speculative_operator.cluster.connection import bearer_token, load, session

READS = frozenset({"GET", "HEAD"})
HOP_BY_HOP = frozenset({"connection", "content-length", "host", "transfer-encoding"})


@dataclass(frozen=True)
class Write:
    """One write that the API server has answered."""

    began: datetime
    """When its head came: of an operator that is frozen the rest may come much later."""
    at: datetime
    verb: str
    resource: str
    name: str
    """Empty where an object is created."""
    subresource: str
    status: int

    def __str__(self) -> str:
        where = "/".join(word for word in (self.resource, self.name, self.subresource) if word)
        return f"{self.verb} {where} ({self.status})"


@dataclass(frozen=True)
class Events:
    """How events of watches are delivered: each up to `late` seconds late, in the order of its
    watch, and `times` times."""

    late: float = 0.0
    times: int = 1


PROMPT = Events()


class Gate:
    """The door, in a thread of its own. `on_write` is called in that thread; while it does not
    return, the operator waits for its answer."""

    def __init__(self, access: ClusterAccess, agent: str) -> None:
        """`agent` is what the audit log calls whoever comes through."""
        self.agent = agent
        self.events = PROMPT
        self.on_write: Callable[[Write], None] = _nothing
        self.writes: list[Write] = []
        self.expired = 0
        """Watches that were refused, since what they ask for is not kept any more."""
        self.port = 0
        self._access = access
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._started = threading.Event()
        self._ended = asyncio.Event()

    @property
    def url(self) -> str:
        """What stands for the API server."""
        return f"http://127.0.0.1:{self.port}"

    def shut(self) -> None:
        """Nothing goes through any more, either way; connections stay, as when a cable is cut."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def open(self) -> None:
        """What waited goes through."""
        self._loop.call_soon_threadsafe(self._open.set)

    @contextlib.contextmanager
    def serving(self) -> Iterator[Gate]:
        """Until the body is left."""
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        thread.start()
        assert self._started.wait(30), "the gate does not start"
        try:
            yield self
        finally:
            self.open()
            self._loop.call_soon_threadsafe(self._ended.set)
            thread.join()
            self._loop.close()

    async def _serve(self) -> None:
        configuration = await load(self._access.kubeconfig, self._access.context)
        token = await bearer_token(configuration)
        async with session(configuration) as upstream:
            door = _Door(self, upstream, configuration.host, token, self._open)
            application = web.Application(client_max_size=2**24)
            application.router.add_route("*", "/{path:.*}", door.pass_through)
            runner = web.AppRunner(
                application, shutdown_timeout=1, access_log=None, handler_cancellation=True
            )
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.port = runner.addresses[0][1]
            self._started.set()
            await self._ended.wait()
            await runner.cleanup()


@dataclass(frozen=True)
class _Door:
    """Passes one request after the other through."""

    gate: Gate
    upstream: aiohttp.ClientSession
    host: str
    token: str | None
    is_open: asyncio.Event

    async def pass_through(self, request: web.Request) -> web.StreamResponse:
        """The API server's answer, whole or event by event."""
        began = datetime.now(UTC)
        await self.is_open.wait()
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP
        }
        headers["Accept-Encoding"] = "identity"
        headers["User-Agent"] = self.gate.agent
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        watches = request.query.get("watch") in ("true", "1")
        try:
            async with self.upstream.request(
                request.method,
                URL(f"{self.host}{request.path_qs}", encoded=True),
                headers=headers,
                data=await request.read() or None,
                timeout=aiohttp.ClientTimeout(total=None if watches else 60),
            ) as answer:
                if watches and answer.status == 200:
                    return await self._events(request, answer)
                return await self._whole(request, answer, began)
        except aiohttp.ClientError as error:
            # A connection that breaks, and no word of the server's.
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPBadGateway(text=str(error)) from error

    async def _whole(
        self, request: web.Request, answer: aiohttp.ClientResponse, began: datetime
    ) -> web.StreamResponse:
        body = await answer.read()
        if request.method not in READS:
            write = _write(request, answer.status, began)
            self.gate.writes.append(write)
            await asyncio.to_thread(self.gate.on_write, write)
        await self.is_open.wait()
        self.gate.expired += answer.status == 410
        return web.Response(
            status=answer.status, body=body, headers={"Content-Type": _content_type(answer)}
        )

    async def _events(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _content_type(answer)})
        await response.prepare(request)
        async for line in _lines(answer):
            await self.is_open.wait()
            self.gate.expired += b'"code":410' in line
            for _ in range(self.gate.events.times):
                if self.gate.events.late:
                    await asyncio.sleep(random.uniform(0, self.gate.events.late))
                await response.write(line)
        return response


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"


def _content_type(answer: aiohttp.ClientResponse) -> str:
    return answer.headers.get("Content-Type", "application/json")


def _write(request: web.Request, status: int, began: datetime) -> Write:
    """`/api/v1/namespaces/N/pods/P/status`, or without a name where something is created."""
    words = request.path.strip("/").split("/")
    at = words.index("namespaces") + 2 if "namespaces" in words else len(words) - 1
    resource, name, subresource = [*words[at:], "", ""][:3]
    return Write(began, datetime.now(UTC), request.method, resource, name, subresource, status)


def _nothing(_: Write) -> None:
    """Lets every write pass."""
