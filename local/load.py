"""Load on an OpenAI-compatible server, bounded in time and count.

    python -m local.load --url http://HOST:PORT --concurrency 4 --duration 60

Each of the clients sends one streaming completion after the other. Every second a line shows what
came back; the last line is the sum. As a library: `async with load(plan) as running: …`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp

PAUSE_AFTER_FAILURE = 0.2
"""Seconds: a server that refuses must not be flooded."""

SHOWN_FAILURES = 5


@dataclass(frozen=True)
class LoadPlan:
    """What to send. `url` is the server's root; durations are in seconds."""

    url: str
    concurrency: int
    duration: float
    requests: int = 100_000
    """At most so many, whatever the duration."""
    max_tokens: int = 128
    prompt_words: int = 32
    model: str | None = None
    """By default the first that /v1/models lists."""
    temperature: float = 0.0
    """Above 0 the target samples, which few drafts foresee."""
    request_timeout: float = 120.0


@dataclass
class LoadReport:
    """What came back so far. Every failure is a request that got no whole answer."""

    sent: int = 0
    finished: int = 0
    failed: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    """The first few, in words."""

    @property
    def tokens_per_second(self) -> float:
        """Over the whole time so far."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.seconds:.0f} s: {self.sent} sent, {self.finished} finished, "
            f"{self.failed} failed, {self.tokens_per_second:.0f} tokens/s"
        )


class Load:
    """A running load. `report` may be read at any time."""

    def __init__(self, plan: LoadPlan) -> None:
        self.report = LoadReport()
        self._plan = plan
        self._numbers = itertools.count(1)
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Sends no new request; those under way are finished."""
        self._stopped.set()

    async def run(self) -> LoadReport:
        """Runs until the plan's time or count is used up, or `stop`."""
        timeout = aiohttp.ClientTimeout(total=self._plan.request_timeout)
        # A kept connection may be closed by the server just when the next request goes out, which
        # would read as a failure of the server; and it stays with one pod, however many there are.
        connector = aiohttp.TCPConnector(limit=self._plan.concurrency, force_close=True)
        started = time.monotonic()
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            model = self._plan.model or await first_model(session, self._plan.url)
            clock = asyncio.ensure_future(self._keep_time(started))
            try:
                await asyncio.gather(
                    *(self._client(session, model) for _ in range(self._plan.concurrency))
                )
            finally:
                clock.cancel()
                await asyncio.wait((clock,))
        self.report.seconds = time.monotonic() - started
        return self.report

    async def ended(self, seconds: float) -> bool:
        """Waits so long at most; whether the load has come to its end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        return self._stopped.is_set()

    async def _keep_time(self, started: float) -> None:
        while not self._stopped.is_set():
            self.report.seconds = time.monotonic() - started
            if self.report.seconds >= self._plan.duration:
                self.stop()
            await self.ended(0.1)

    async def _client(self, session: aiohttp.ClientSession, model: str) -> None:
        while not self._stopped.is_set() and self.report.sent < self._plan.requests:
            self.report.sent += 1
            try:
                await self._request(session, model, next(self._numbers))
                self.report.finished += 1
            except (aiohttp.ClientError, TimeoutError, RequestFailed) as error:
                self.report.failed += 1
                if len(self.report.failures) < SHOWN_FAILURES:
                    self.report.failures.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(PAUSE_AFTER_FAILURE)

    async def _request(self, session: aiohttp.ClientSession, model: str, number: int) -> None:
        body = {
            "model": model,
            "prompt": _prompt(number, self._plan.prompt_words),
            "max_tokens": self._plan.max_tokens,
            "temperature": self._plan.temperature,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        counted, ended = 0, False
        async with session.post(f"{self._plan.url}/v1/completions", json=body) as answer:
            if answer.status != 200:
                raise RequestFailed(f"status {answer.status}: {(await answer.text())[:200]}")
            async for line in answer.content:
                text = line.decode().strip().removeprefix("data: ")
                if text == "[DONE]":
                    ended = True
                elif text:
                    counted = self._count(json.loads(text), counted)
        if not ended:
            raise RequestFailed("the stream ended without [DONE]")

    def _count(self, chunk: dict[str, object], counted: int) -> int:
        """Adds a chunk's new tokens; returns how many of this request are counted now."""
        if "error" in chunk:
            raise RequestFailed(str(chunk["error"])[:200])
        usage = chunk.get("usage")
        if not isinstance(usage, dict):
            return counted
        total = int(usage["completion_tokens"])
        self.report.tokens += total - counted
        return total


class RequestFailed(Exception):
    """The server answered, but not with a whole completion."""


@contextlib.asynccontextmanager
async def load(plan: LoadPlan) -> AsyncIterator[Load]:
    """A load that runs beside the body; at its end the last requests are waited for."""
    running = Load(plan)
    task = asyncio.ensure_future(running.run())
    try:
        yield running
    finally:
        running.stop()
        await task


async def first_model(session: aiohttp.ClientSession, url: str) -> str:
    """The first name that the server lists."""
    async with session.get(f"{url}/v1/models") as answer:
        answer.raise_for_status()
        return str((await answer.json())["data"][0]["id"])


def _prompt(number: int, words: int) -> str:
    """Differs from its first word on, so that no prefix cache answers it."""
    return " ".join(f"{number + word}" for word in range(words))


async def _main(plan: LoadPlan) -> int:
    async with load(plan) as running:
        while not await running.ended(1.0):
            print(running.report, flush=True)
    print(running.report)
    for failure in running.report.failures:
        print(failure, file=sys.stderr)
    return 1 if running.report.failed else 0


def main() -> None:
    """Exits 1 if a request failed."""
    parser = argparse.ArgumentParser("python -m local.load", description=__doc__)
    parser.add_argument("--url", required=True, help="the server's root, http://HOST:PORT")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--duration", type=float, default=60.0, help="seconds")
    parser.add_argument("--requests", type=int, default=100_000, help="at most so many")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--prompt-words", type=int, default=32)
    parser.add_argument("--model", help="by default the first that the server lists")
    sys.exit(asyncio.run(_main(LoadPlan(**vars(parser.parse_args())))))


if __name__ == "__main__":
    main()
