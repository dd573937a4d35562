"""Plays one simulated engine in real time and hands its tokens to whoever asked for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping

from local.simulated_engine.engine import Engine, Request
from local.simulated_engine.vllm_metrics import VllmMetrics
from local.simulated_engine.world import PageFault

LATEST = 1.0
"""Seconds that the loop may lag behind its own clock before it gives the lost time up."""


class EngineDead(Exception):
    """The engine core is gone; the text says why."""


class Service:
    """The loop of one engine, and its requests.

    Steps end at exact instants of the engine's clock, however late this process wakes up: a busy
    machine makes the tokens late, not the measured steps slower.
    """

    def __init__(self, engine: Engine, metrics: VllmMetrics) -> None:
        self.engine = engine
        self.metrics = metrics
        self.draining = False
        self.death: EngineDead | None = None
        self._tokens: dict[Request, asyncio.Queue[int | EngineDead]] = {}
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    async def emptied(self) -> None:
        """Returns once no request is left."""
        await self._empty.wait()

    def change(self, wanted: Mapping[str, object]) -> None:
        """New conditions, from the next step on. ValueError: see `World.changed`."""
        self.engine.change(wanted)
        if wanted.get("page") == PageFault.RESET:
            self.metrics.reset()
        self._news.set()

    async def generate(self, prompt: str, prompt_tokens: int, limit: int) -> AsyncIterator[int]:
        """Yields how many tokens each step brought, until there are `limit`.

        EngineDead if the engine dies before. Left early, the request is aborted.
        """
        if self.death is not None:
            raise self.death
        request = Request(prompt_tokens, limit, time.monotonic(), prompt=hash(prompt))
        tokens: asyncio.Queue[int | EngineDead] = asyncio.Queue()
        self._tokens[request] = tokens
        self._empty.clear()
        self.engine.submit(request)
        self._news.set()
        try:
            given = 0
            while given < limit:
                news = await tokens.get()
                if isinstance(news, EngineDead):
                    raise news
                given += news
                yield news
        finally:
            if not request.done:
                self.engine.abort(request)
                self.metrics.ended(request, "abort", time.monotonic())
            del self._tokens[request]
            if not self._tokens:
                self._empty.set()

    async def run(self) -> None:
        """Steps for ever. Raises EngineDead when a test lets the engine crash."""
        now = time.monotonic()
        while True:
            now = max(now, time.monotonic() - LATEST)
            await self._while_hung()
            seconds = self.engine.begin(now)
            if seconds is None:
                self._news.clear()
                await self._news.wait()
                now = time.monotonic()
                continue
            now += seconds
            await asyncio.sleep(max(0.0, now - time.monotonic()))
            await self._while_hung()
            self._deliver(now)

    def _deliver(self, now: float) -> None:
        completed = self.engine.complete(now)
        self.metrics.stepped(completed)
        for request, count in completed.given:
            queue = self._tokens.get(request)
            if queue is not None:
                queue.put_nowait(count)
        for request in completed.finished:
            if request in self._tokens:
                self.metrics.ended(request, "length", now)

    async def _while_hung(self) -> None:
        self._die_if_asked()
        while self.engine.world.hung:
            self._news.clear()
            await self._news.wait()
            self._die_if_asked()

    def _die_if_asked(self) -> None:
        if not self.engine.world.crash:
            return
        self.death = EngineDead(self.engine.world.crash)
        for queue in self._tokens.values():
            queue.put_nowait(self.death)
        raise self.death
