"""`vllm serve MODEL …`, simulated.

Environment, besides the plugin's own:
    SIMULATED_TARGET        the table's target, if it is not MODEL
    SIMULATED_METHOD        the table's method, if it is not that of --speculative-config
    SIMULATED_WORKLOAD      gsm8k (default), math500, humaneval or mbpp
    SIMULATED_SEED          0
    SIMULATED_LOAD_SECONDS  0.2: time from start to the first answer
    SIMULATED_CONTROL_PORT  9406: GET and PATCH /world
    SIMULATED_WORLD         JSON as for PATCH /world: how it starts
    SIMULATED_END, SIMULATED_END_IF   see `ending`
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from aiohttp import web

from live_speculation import plugin, termination
from live_speculation.assumptions import FATAL_LOGGERS, FATAL_MESSAGES
from live_speculation.live import LiveSpeculation
from live_speculation.reading import DEFAULT_PATH, ScheduleReader, read_in_background
from live_speculation.serving import DEFAULT_PORT, PageServer
from local.simulated_engine.arguments import Arguments, parse_arguments
from local.simulated_engine.assembly import GroupMissing, assemble, choose_group
from local.simulated_engine.draft import Draft, Noise
from local.simulated_engine.ending import end_if_asked
from local.simulated_engine.faults import spoil_metrics, spoil_state
from local.simulated_engine.server import Endpoints, control
from local.simulated_engine.service import EngineDead, Service
from local.simulated_engine.vllm_metrics import VllmMetrics
from local.simulated_engine.world import PageFault

CONTROL_PORT = 9406

Page = Callable[[], str]

log = logging.getLogger(FATAL_LOGGERS[0])


def build(arguments: Arguments) -> Service:
    """The service that the command line and the environment ask for."""
    speculation = arguments.speculation
    method = speculation.method if speculation else None
    group = choose_group(
        os.environ.get("SIMULATED_TARGET") or arguments.model,
        os.environ.get("SIMULATED_METHOD") or method,
        os.environ.get("SIMULATED_WORKLOAD") or "gsm8k",
    )
    engine = assemble(
        arguments,
        Draft(
            group,
            speculative=speculation is not None,
            noise=Noise(),
            seed=int(os.environ.get("SIMULATED_SEED", "0")),
        ),
        plugin=_plugin_installed(),
    )
    engine.change(json.loads(os.environ.get("SIMULATED_WORLD", "{}")))
    length = speculation.length if speculation else 0
    metrics = VllmMetrics(engine, model=arguments.served_names[0], length=length)
    return Service(engine, metrics)


def serve_pages(service: Service, live: LiveSpeculation, path: Path, port: int) -> PageServer:
    """The plugin's reader and pages, which the test's conditions may spoil."""
    read_in_background(ScheduleReader(path, live))
    pages = PageServer(live, port)
    whole = dict(pages.pages)

    def spoiled(name: str, spoil: Callable[[str, PageFault], str]) -> tuple[str, Page]:
        kind, render = whole[name]
        return kind, lambda: spoil(render(), service.engine.world.page)

    pages.pages = {
        "/state": spoiled("/state", spoil_state),
        "/metrics": spoiled("/metrics", spoil_metrics),
    }
    pages.start()
    return pages


async def serve(service: Service, arguments: Arguments) -> None:
    """Serves until the engine dies or SIGTERM has drained it."""
    await asyncio.sleep(float(os.environ.get("SIMULATED_LOAD_SECONDS", "0.2")))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if service.engine.live is not None:
        serve_pages(
            service,
            service.engine.live,
            Path(os.environ.get(plugin.SCHEDULE) or DEFAULT_PATH),
            int(os.environ.get(plugin.PORT) or DEFAULT_PORT),
        )
    control_port = int(os.environ.get("SIMULATED_CONTROL_PORT", CONTROL_PORT))
    application = Endpoints(service, arguments).application()
    runners = [
        await _listen(application, arguments.host, arguments.port),
        await _listen(control(service), arguments.host, control_port),
    ]
    steps = asyncio.ensure_future(service.run())
    await asyncio.wait(
        [steps, asyncio.ensure_future(stopped.wait())], return_when=asyncio.FIRST_COMPLETED
    )
    if steps.done():
        _report(steps)
        await asyncio.sleep(DEAD_FOR)
    else:
        service.draining = True
        await drain(service, arguments.shutdown_timeout)
    for runner in runners:
        await runner.cleanup()


DEAD_FOR = 0.5
"""Seconds in which /health says 503 before the process of a dead engine exits."""


async def drain(service: Service, timeout: float) -> None:  # noqa: ASYNC109 - it is vLLM's flag
    """Waits until the running requests are finished, at most `timeout` seconds."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(service.emptied(), timeout)


def _report(steps: asyncio.Future[None]) -> None:
    """As vLLM's core does, to its own logger: there the plugin reads what to leave behind."""
    try:
        steps.result()
    except EngineDead:
        log.exception("EngineCore encountered a fatal error.")


async def _listen(application: web.Application, host: str, port: int) -> web.AppRunner:
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=1.0
    )
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner


def _plugin_installed() -> bool:
    return any(
        entry.value.startswith("live_speculation.")
        for entry in entry_points(group="vllm.general_plugins")
    )


def main() -> None:
    """Exits 0 after a drained stop and, as vLLM does, after the engine's death."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    arguments = parse_arguments(sys.argv[1:])
    path = Path(os.environ.get(plugin.TERMINATION_LOG) or termination.DEFAULT_PATH)
    termination.watch(path, FATAL_LOGGERS, FATAL_MESSAGES)
    end_if_asked(sys.argv[1:], os.environ, path)
    try:
        service = build(arguments)
    except GroupMissing as missing:
        sys.exit(str(missing))
    asyncio.run(serve(service, arguments))


if __name__ == "__main__":
    main()
