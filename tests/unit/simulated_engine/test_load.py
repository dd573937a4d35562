"""The load generator: bounded, and honest about what failed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from local.load import Load, LoadPlan, load

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(completions: Handler) -> AsyncIterator[str]:
    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "tiny"}]})

    application = web.Application()
    application.add_routes(
        [web.get("/v1/models", models), web.post("/v1/completions", completions)]
    )
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def streaming(*, tokens: int, done: bool = True) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for count in (tokens - 1, tokens, tokens):
            chunk = {"choices": [], "usage": {"completion_tokens": count}}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        if done:
            await response.write(b"data: [DONE]\n\n")
        return response

    return answer


async def test_tokens_are_counted_once_however_often_usage_is_repeated() -> None:
    """Usage is a running total, and a step brings several tokens in one chunk."""
    async with serving(streaming(tokens=5)) as url:
        report = await Load(LoadPlan(url, concurrency=2, duration=60, requests=6)).run()

    assert (report.sent, report.finished, report.failed, report.tokens) == (6, 6, 0, 30)
    assert report.tokens_per_second > 0


async def test_a_stream_that_breaks_off_is_a_failure() -> None:
    """Half an answer looks like success to a client that only reads the status."""
    async with serving(streaming(tokens=5, done=False)) as url:
        report = await Load(LoadPlan(url, concurrency=1, duration=60, requests=1)).run()

    assert (report.finished, report.failed) == (0, 1)
    assert "without [DONE]" in report.failures[0]


@pytest.mark.parametrize("status", [400, 500, 503])
async def test_a_refusal_is_a_failure_with_its_words(status: int) -> None:
    """Drops during a rollout must be seen, with their cause."""

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, text="shutting down")

    async with serving(refuse) as url:
        report = await Load(LoadPlan(url, concurrency=1, duration=60, requests=1)).run()

    assert report.failures == [f"RequestFailed: status {status}: shutting down"]


async def test_each_request_has_a_connection_of_its_own() -> None:
    """One that is kept stays with its pod, and may be closed just when it is used again."""
    connections = set()

    async def noted(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        connections.add(request.transport.get_extra_info("peername"))
        return await streaming(tokens=2)(request)

    async with serving(noted) as url:
        await Load(LoadPlan(url, concurrency=1, duration=60, requests=5)).run()

    assert len(connections) == 5


async def test_leaving_the_body_ends_the_load_after_the_running_requests() -> None:
    """A load that cuts its own requests would count failures that are its own."""
    started = asyncio.Event()
    release = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        started.set()
        await release.wait()
        return await streaming(tokens=2)(request)

    async with serving(slow) as url, load(LoadPlan(url, concurrency=1, duration=60)) as running:
        await started.wait()
        release.set()

    assert running.report.finished == running.report.sent > 0
    assert running.report.failed == 0
