"""Asks engines over HTTP. The session is passed in; every error of aiohttp becomes EngineSilent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

import aiohttp

from speculative_operator.api.names import PORT_HTTP_NUMBER, PORT_SPECULATION_NUMBER
from speculative_operator.engine.body import whole
from speculative_operator.engine.completion import asked_of, parse_completion
from speculative_operator.engine.state_page import parse_state
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.engine.vllm_metrics import parse_vllm_metrics
from speculative_operator.errors import EngineSilent
from speculative_operator.plan.continuations import Continuation
from speculative_operator.tuning.page import Page

TIMEOUT_SECONDS = 3.0
"""For one answer, connection included; an engine answers from memory."""

COMPLETION_SECONDS = 120.0
"""For a few tokens from an engine that may have much else to do. The first answer with
log-probabilities after a start took 33 s where kernels are compiled when they are first used."""


class Addressed(Protocol):
    """Something whose engine is reached at an address."""

    @property
    def address(self) -> str: ...


class Engines:
    """Reads pages and names of engines. `state_port` and `http_port` are the same in every pod."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        state_port: int = PORT_SPECULATION_NUMBER,
        http_port: int = PORT_HTTP_NUMBER,
    ) -> None:
        self._session = session
        self._state_port = state_port
        self._http_port = http_port

    async def read(self, replica: Addressed) -> Page:
        """The plugin's page; vLLM's own where the plugin does not listen or does not measure."""
        try:
            status, body = await self._get(replica.address, self._state_port, "/state")
        except NotListening:
            return await self._read_vllm(replica.address)
        except PageUnreadable:
            raise
        except EngineSilent as silence:
            raise await self._told_apart(replica.address, silence) from silence
        if status != 200:
            raise EngineSilent(f"/state answered {status}")
        page = parse_state(body)
        if page.measured:
            return page
        own = await self._read_vllm(replica.address)
        return replace(own, plugin=page.plugin, vllm=page.vllm, reason=page.reason)

    async def _told_apart(self, address: str, silence: EngineSilent) -> EngineSilent:
        """The plugin's page comes from the engine's core, vLLM's own from another process: where
        only that one answers, it is the core that hangs, and not the network."""
        try:
            own = await self._read_vllm(address)
        except EngineSilent:
            return silence
        return EngineSilent(
            f"port {self._state_port}: {silence}; port {self._http_port} answers and shows "
            f"{own.running} running requests, so the engine's core hangs or has no CPU time"
        )

    async def _read_vllm(self, address: str) -> Page:
        status, body = await self._get(address, self._http_port, "/metrics")
        if status != 200:
            raise EngineSilent(f"/metrics answered {status}")
        try:
            return parse_vllm_metrics(body.decode())
        except UnicodeDecodeError as error:
            raise PageUnreadable(f"/metrics is no text: {error}") from error

    async def served_names(self, address: str) -> Collection[str] | None:
        """The names in /v1/models; None when the engine answers only to a key."""
        status, body = await self._get(address, self._http_port, "/v1/models")
        if status in (401, 403):
            return None
        if status != 200:
            raise EngineSilent(f"/v1/models answered {status}")
        try:
            return frozenset(str(entry["id"]) for entry in json.loads(body)["data"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise PageUnreadable("/v1/models is no list of models") from error

    async def continuation(
        self, address: str, model: str, prompt: str, *, gaps: bool
    ) -> Continuation | None:
        """The greedy continuation of a prompt, with `gaps` between its best tokens if they are
        wanted; None when the engine answers only to a key."""
        asked = asked_of(model, prompt, gaps=gaps)
        path = "/v1/completions"
        status, body = await self._request("POST", address, (self._http_port, path), asked)
        if status in (401, 403):
            return None
        if status != 200:
            raise EngineSilent(f"{path} answered {status}")
        return parse_completion(body, gaps=gaps)

    async def _get(self, address: str, port: int, path: str) -> tuple[int, bytes]:
        """Status and body, or EngineSilent."""
        return await self._request("GET", address, (port, path))

    async def _request(
        self, method: str, address: str, at: tuple[int, str], asked: object = None
    ) -> tuple[int, bytes]:
        """The same with a body in JSON, which the engine may take its time for."""
        port, path = at
        host = f"[{address}]" if ":" in address else address
        seconds = TIMEOUT_SECONDS if asked is None else COMPLETION_SECONDS
        try:
            async with asyncio.timeout(seconds):
                async with self._session.request(
                    method, f"http://{host}:{port}{path}", allow_redirects=False, json=asked
                ) as answer:
                    return answer.status, await whole(answer.content)
        except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
            raise NotListening(f"port {port}: {error}") from error
        except TimeoutError as error:
            raise EngineSilent(f"no answer within {seconds:.0f} s") from error
        except (
            aiohttp.ClientError,
            aiohttp.http.HttpProcessingError,
            OSError,
            ValueError,
        ) as error:
            raise EngineSilent(f"{type(error).__name__}: {error}") from error


class NotListening(EngineSilent):
    """Nobody accepts a connection there."""
