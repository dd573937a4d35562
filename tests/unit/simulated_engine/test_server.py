"""The HTTP face, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from local.simulated_engine.__main__ import drain, serve_pages
from local.simulated_engine.arguments import Arguments, Speculation
from local.simulated_engine.assembly import assemble, choose_group
from local.simulated_engine.draft import Draft
from local.simulated_engine.server import Endpoints, control
from local.simulated_engine.service import EngineDead, Service
from local.simulated_engine.vllm_metrics import VllmMetrics

SPECULATION = Speculation("eagle3", 3, ((1, 6, 3), (7, 7, 1), (8, 8, 0)))


@dataclass
class Running:
    """A server on loopback, its control port and its page port."""

    service: Service
    steps: asyncio.Task[None]
    url: str
    control_url: str
    pages_url: str
    session: aiohttp.ClientSession
    schedule: Path

    async def complete(self, **body: object) -> dict[str, Any]:
        """A completion without streaming; fails on any status but 200."""
        asked = {"model": "tiny", "prompt": "one two three", "max_tokens": 12} | body
        async with self.session.post(f"{self.url}/v1/completions", json=asked) as answer:
            assert answer.status == 200, await answer.text()
            return dict(await answer.json())

    async def change(self, **wanted: object) -> None:
        async with self.session.patch(f"{self.control_url}/world", json=wanted) as answer:
            assert answer.status == 200, await answer.text()

    async def state(self) -> dict[str, Any]:
        async with self.session.get(f"{self.pages_url}/state") as answer:
            return dict(json.loads(await answer.text()))


@contextlib.asynccontextmanager
async def listening(application: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def a_server(tmp_path: Path, api_key: str | None = None) -> AsyncIterator[Running]:
    arguments = Arguments(
        model="Qwen/Qwen3-8B",
        served_names=("tiny",),
        host="127.0.0.1",
        port=0,
        max_batch=8,
        shutdown_timeout=5.0,
        api_key=api_key,
        data_parallel=1,
        speculation=SPECULATION,
    )
    draft = Draft(choose_group(arguments.model, "eagle3", "gsm8k"))
    engine = assemble(arguments, draft, plugin=True)
    service = Service(engine, VllmMetrics(engine, model="tiny", length=3))
    assert engine.live is not None
    schedule = tmp_path / "schedule.json"
    pages = serve_pages(service, engine.live, schedule, 0)
    async with (
        listening(Endpoints(service, arguments).application()) as url,
        listening(control(service)) as control_url,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
    ):
        steps = asyncio.create_task(service.run())
        pages_url = f"http://127.0.0.1:{pages.port}"
        yield Running(service, steps, url, control_url, pages_url, session, schedule)
        steps.cancel()
        with contextlib.suppress(asyncio.CancelledError, EngineDead):
            await steps
    pages.shutdown()
    pages.server_close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with a_server(tmp_path) as running:
        yield running


async def test_it_is_healthy_and_lists_its_served_name(server: Running) -> None:
    """What Ready in status asks for."""
    async with server.session.get(f"{server.url}/health") as health:
        assert health.status == 200
    async with server.session.get(f"{server.url}/v1/models") as models:
        assert [model["id"] for model in (await models.json())["data"]] == ["tiny"]
    async with server.session.get(f"{server.url}/version") as version:
        assert (await version.json())["version"].startswith("0.33.0")


async def test_a_completion_has_the_tokens_and_usage_asked_for(server: Running) -> None:
    """Load and goodput are counted by them."""
    answer = await server.complete(max_tokens=12)

    assert len(answer["choices"][0]["text"].split()) == 12
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 12, "total_tokens": 15}


async def test_the_text_does_not_depend_on_the_proposal_length(server: Running) -> None:
    """The target alone decides the output."""
    with_drafts = await server.complete()
    server.schedule.write_text('{"protocol":1,"table":[[1,8,0]]}')
    await until(server, lambda state: state["hash_read"] is not None)

    without = await server.complete()

    assert without["choices"][0]["text"] == with_drafts["choices"][0]["text"]
    assert any(row[0] == 0 for row in (await server.state())["rows"])


async def test_log_probabilities_name_each_token_and_another(server: Running) -> None:
    """The operator reads from them how sure the engine was."""
    answer = await server.complete(max_tokens=5, logprobs=2, return_token_ids=True)

    said = answer["choices"][0]["logprobs"]
    numbers = [int(token.removeprefix("token_id:")) for token in said["tokens"]]
    assert numbers == answer["choices"][0]["token_ids"]
    assert len(said["tokens"]) == len(said["top_logprobs"]) == 5
    for token, best in zip(said["tokens"], said["top_logprobs"], strict=True):
        assert max(best, key=best.get) == token
        assert len(best) == 2


async def test_another_speaker_says_something_else(server: Running) -> None:
    """A model with other weights does."""
    before = await server.complete()
    await server.change(speaker="another")

    after = await server.complete()

    assert after["choices"][0]["text"] != before["choices"][0]["text"]


@pytest.mark.parametrize("path", ["completions", "chat/completions"])
async def test_a_stream_ends_with_done_and_carries_several_tokens_a_chunk(
    server: Running, path: str
) -> None:
    """As with speculation in vLLM: one chunk a step, not one a token."""
    body = {
        "model": "tiny",
        "prompt": "one",
        "messages": [{"role": "user", "content": "one"}],
        "max_tokens": 60,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with server.session.post(f"{server.url}/v1/{path}", json=body) as answer:
        assert answer.content_type == "text/event-stream"
        lines = [line for line in (await answer.text()).split("\n\n") if line]

    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert chunks[-1]["usage"]["completion_tokens"] == 60
    choices = [chunk["choices"][0] for chunk in chunks[:-1]]
    texts = [choice.get("text") or choice.get("delta", {}).get("content", "") for choice in choices]
    assert len(" ".join(texts).split()) == 60
    assert max(len(text.split()) for text in texts) > 1
    assert [choice["finish_reason"] for choice in choices[-2:]] == [None, "length"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "other", "prompt": "x"}, 404),
        ({"model": "tiny"}, 400),
        ({"model": "tiny", "prompt": "x", "max_tokens": 0}, 400),
        ([], 400),
    ],
)
async def test_a_wrong_request_is_refused(server: Running, body: object, status: int) -> None:
    """With vLLM's status and error body."""
    async with server.session.post(f"{server.url}/v1/completions", json=body) as answer:
        assert answer.status == status
        assert (await answer.json())["error"]["message"]


async def test_with_a_key_only_v1_is_closed(tmp_path: Path) -> None:
    """As in vLLM: probes need no key, and a 401 still counts as answered."""
    async with a_server(tmp_path, api_key="secret") as server:
        for path, status in (("/v1/models", 401), ("/health", 200), ("/metrics", 200)):
            async with server.session.get(f"{server.url}{path}") as answer:
                assert answer.status == status


async def test_a_client_that_leaves_frees_its_place(server: Running) -> None:
    """As vLLM aborts the requests of closed connections."""
    body = {"model": "tiny", "prompt": "x", "max_tokens": 1_000_000, "stream": True}
    async with server.session.post(f"{server.url}/v1/completions", json=body) as answer:
        await answer.content.readline()

    await until(server, lambda state: state["running"] == 0)


async def until(server: Running, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Waits for a page of which `holds` is true."""
    async with asyncio.timeout(15):
        page = await server.state()
        while not holds(page):
            await asyncio.sleep(0.02)
            page = await server.state()
    return page


async def test_a_schedule_file_is_played_and_its_hash_reported(server: Running) -> None:
    """Verification by hash, through the plugin's own reader."""
    server.schedule.write_text('{"protocol":1,"table":[[1,8,1]]}')
    page = await until(server, lambda state: state["hash_read"] is not None)
    await server.complete()

    assert (await server.state())["hash_in_force"] == page["hash_read"]


async def test_a_hung_engine_keeps_its_requests_and_says_it_is_well(server: Running) -> None:
    """What /health never sees."""
    await server.change(hung=True)
    waiting = asyncio.create_task(server.complete())
    await until(server, lambda state: state["running"] + state["waiting"] == 1)

    async with server.session.get(f"{server.url}/health") as health:
        assert health.status == 200
    assert not waiting.done()
    await server.change(hung=False)
    assert (await waiting)["usage"]["completion_tokens"] == 12


async def test_a_crash_fails_running_requests_and_health(server: Running) -> None:
    """As a dead engine core: 500 for those who wait, 503 for the probe."""
    await server.change(hung=True)
    body = {"model": "tiny", "prompt": "x"}
    waiting = asyncio.ensure_future(server.session.post(f"{server.url}/v1/completions", json=body))
    await until(server, lambda state: state["running"] + state["waiting"] == 1)

    await server.change(crash="HSA_STATUS_ERROR_EXCEPTION")

    assert (await waiting).status == 500
    with pytest.raises(EngineDead, match="HSA_STATUS_ERROR_EXCEPTION"):
        await server.steps
    async with server.session.get(f"{server.url}/health") as health:
        assert health.status == 503


async def test_health_can_fail_while_requests_go_on(server: Running) -> None:
    """For the tests of probes alone."""
    await server.change(healthy=False)

    async with server.session.get(f"{server.url}/health") as health:
        assert health.status == 503
    await server.complete()


async def test_an_unreachable_page_hangs_up(server: Running) -> None:
    """As behind a NetworkPolicy that resets connections."""
    await server.change(page="unreachable")

    for url in (f"{server.url}/metrics", f"{server.pages_url}/state"):
        with pytest.raises(aiohttp.ClientError):
            await server.session.get(url)


async def test_reset_counters_start_again(server: Running) -> None:
    """Without a new start time: the tuner has only the counters to tell."""
    await server.complete()
    assert (await server.state())["rows"]

    await server.change(page="reset")

    assert (await server.state())["rows"] == []


async def test_a_wrong_condition_is_refused_with_words(server: Running) -> None:
    """The control port answers what World says."""
    wanted = {"acceptence": 0.1}
    async with server.session.patch(f"{server.control_url}/world", json=wanted) as answer:
        assert answer.status == 400
        assert "no such condition: acceptence" in await answer.text()


async def test_draining_refuses_new_requests_and_waits_for_the_running(server: Running) -> None:
    """As vLLM after SIGTERM within --shutdown-timeout."""
    await server.change(hung=True)
    running = asyncio.create_task(server.complete())
    await until(server, lambda state: state["running"] + state["waiting"] == 1)
    server.service.draining = True
    draining = asyncio.create_task(drain(server.service, 10.0))

    body = {"model": "tiny", "prompt": "x"}
    async with server.session.post(f"{server.url}/v1/completions", json=body) as refused:
        assert refused.status == 500
    assert not draining.done()
    await server.change(hung=False)

    assert (await running)["usage"]["completion_tokens"] == 12
    await draining
