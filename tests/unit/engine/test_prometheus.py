"""The client of Prometheus against a real HTTP server: every failure is no evidence."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import metrics
from speculative_operator.engine import body, prometheus
from speculative_operator.engine.prometheus import Prometheus, PrometheusSettings
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from tests.support.scrapes import Scrapes
from tests.support.self_signed import self_signed

NOW = 1_000.0
LOOPBACK = "127.0.0.1"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Ask = Callable[..., Awaitable[Prometheus]]


@pytest.fixture
async def serving() -> AsyncIterator[Ask]:
    """A client of a server that answers every query by one handler."""
    runners = []
    async with aiohttp.ClientSession() as session:

        async def start(
            handler: Handler, token: Path | None = None, pair: tuple[Path, Path] | None = None
        ) -> Prometheus:
            app = web.Application()
            app.router.add_post("/prom/api/v1/query", handler)
            runner = web.AppRunner(app)
            runners.append(runner)
            await runner.setup()
            await web.TCPSite(runner, LOOPBACK, 0, ssl_context=identity(pair)).start()
            scheme = "https" if pair else "http"
            url = f"{scheme}://{LOOPBACK}:{runner.addresses[0][1]}/prom/"
            trusted = pair[1].with_name("trusted.crt") if pair else None
            return Prometheus(session, PrometheusSettings(url, token, trusted), lambda: NOW)

        yield start
        for runner in runners:
            await runner.cleanup()


def identity(pair: tuple[Path, Path] | None) -> ssl.SSLContext | None:
    if pair is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    key, certificate = pair
    context.load_cert_chain(certificate, key)
    return context


def answering(status: int = 200, text: str = "{}") -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, content_type="application/json")

    return handler


def scraped() -> Scrapes:
    found = Scrapes()
    page = metrics(LiveSpeculation(Engine("0.33.0", method="mtp", capacity=3)))
    found.scrape(page, NOW - 7, pod="pod-1", namespace="ns")
    return found


async def test_a_pod_is_read_with_the_token_of_today(serving: Ask, tmp_path: Path) -> None:
    """The address may have a path; a token is renewed on disk while the operator runs."""
    seen = []

    async def handler(request: web.Request) -> web.Response:
        form = await request.post()
        seen.append((request.headers["Authorization"], str(form["query"])))
        return web.json_response(scraped().answer("pod-1", NOW))

    token = tmp_path / "token"
    token.write_text("old\n")
    client = await serving(handler, token)
    page = await client.read("ns", "pod-1")
    token.write_text("new")
    await client.read("ns", "pod-1")

    assert (page.method, page.capacity, page.age) == ("mtp", 3, 7.0)
    assert [authorization for authorization, _ in seen] == ["Bearer old", "Bearer new"]
    assert 'namespace="ns",pod="pod-1"' in seen[0][1]


async def test_certificates_that_change_are_read_anew(serving: Ask, tmp_path: Path) -> None:
    """An authority is renewed on disk while the operator runs, and may be missing for a moment."""
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    pair, (_, other) = self_signed(tmp_path, LOOPBACK), self_signed(elsewhere, LOOPBACK)
    trusted = tmp_path / "trusted.crt"

    async def handler(_: web.Request) -> web.Response:
        return web.json_response(scraped().answer("pod-1", NOW))

    client = await serving(handler, pair=pair)
    with pytest.raises(EngineSilent, match=r"No such file .*trusted\.crt"):
        await client.read("ns", "pod-1")
    trusted.write_bytes(other.read_bytes())
    with pytest.raises(EngineSilent, match="certificate verify failed"):
        await client.read("ns", "pod-1")
    trusted.write_bytes(pair[1].read_bytes())

    assert (await client.read("ns", "pod-1")).method == "mtp"


async def test_an_answer_without_end_is_not_read_whole(
    serving: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands at the address must not fill the operator's memory."""
    monkeypatch.setattr(body, "MOST_BYTES", 1_000)
    client = await serving(answering(text="x" * 2_000))

    with pytest.raises(PageUnreadable, match="/api/v1/query: more than 1000 bytes"):
        await client.read("ns", "pod-1")


@pytest.mark.parametrize(
    ("status", "text", "why"),
    [
        (401, "", "name the Secret of its token"),
        (403, "", "name the Secret of its token"),
        (422, '{"error":"too many samples"}', "answered 422: .*too many samples"),
        (503, "", "answered 503"),
    ],
)
async def test_a_refusal_is_told_in_its_words(
    serving: Ask, status: int, text: str, why: str
) -> None:
    """It stands in the condition, where the user looks."""
    client = await serving(answering(status, text))

    with pytest.raises(EngineSilent, match=why) as silence:
        await client.read("ns", "pod-1")
    assert not isinstance(silence.value, PageUnreadable)


async def test_a_token_that_is_refused_is_named(serving: Ask, tmp_path: Path) -> None:
    """A file that is not there is no token."""
    client = await serving(answering(401), tmp_path / "token")
    with pytest.raises(EngineSilent, match="No such file"):
        await client.read("ns", "pod-1")

    (tmp_path / "token").write_text("stale")
    with pytest.raises(EngineSilent, match=r"it refuses the token in .*/token"):
        await client.read("ns", "pod-1")


@pytest.mark.parametrize(
    "text",
    [
        "<html>",
        "[]",
        "{}",
        '{"data":{"resultType":"vector","result":[]}}',
        '{"data":{"resultType":"matrix","result":[{"metric":{},"values":[]}]}}',
    ],
)
async def test_what_is_no_answer_of_prometheus_is_refused(serving: Ask, text: str) -> None:
    """Another server may stand at the address, for example a login page."""
    client = await serving(answering(text=text))

    with pytest.raises(PageUnreadable):
        await client.read("ns", "pod-1")


async def test_nothing_scraped_is_no_evidence(serving: Ask) -> None:
    """A Prometheus that has just started, or does not scrape the pods."""
    client = await serving(answering(text='{"data":{"resultType":"matrix","result":[]}}'))

    with pytest.raises(EngineSilent, match="let it scrape"):
        await client.read("ns", "pod-1")


async def test_an_outage_is_no_evidence() -> None:
    """Nobody listens there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with aiohttp.ClientSession() as session:
        client = Prometheus(session, PrometheusSettings(f"http://127.0.0.1:{port}"))

        with pytest.raises(EngineSilent, match=f"127.0.0.1:{port}/api/v1/query: ClientConnector"):
            await client.read("ns", "pod-1")


async def test_one_that_does_not_answer_is_left(
    serving: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass of the tuner ends in bounded time."""
    monkeypatch.setattr(prometheus, "TIMEOUT_SECONDS", 0.05)

    hang = asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        await hang.wait()
        return web.Response()

    client = await serving(handler)

    with pytest.raises(EngineSilent, match="no answer within"):
        await client.read("ns", "pod-1")
    hang.set()
