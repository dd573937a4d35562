"""Engines without traffic for pods that run nothing: `python -m benchmarks.idle_engines FILE`.

They answer on every loopback address: /v1/models as behind an API key, and the plugin's page as of
an engine that has taken up the schedule in FILE.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import web

from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import state_json
from live_speculation.schedule import parse
from speculative_operator.api.names import PORT_HTTP_NUMBER, PORT_SPECULATION_NUMBER


def page(schedule: bytes) -> str:
    """The plugin's own page about an engine that has never had a request."""
    lengths = frozenset(range(8))
    live = LiveSpeculation(Engine("0.33.0", "V2", "eagle3", 7, 256, lengths))
    live.offer(parse(schedule, lengths))
    live.table(0.0)
    return state_json(live)


async def serve(application: web.Application, port: int) -> None:
    """Listens on every address."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", port).start()


async def main(text: str) -> None:
    """Serves until it is ended."""

    async def names(_: web.Request) -> web.Response:
        return web.Response(status=401)

    async def state(_: web.Request) -> web.Response:
        return web.Response(text=text)

    models, pages = web.Application(), web.Application()
    models.add_routes([web.get("/v1/models", names)])
    pages.add_routes([web.get("/state", state)])
    await serve(models, PORT_HTTP_NUMBER)
    await serve(pages, PORT_SPECULATION_NUMBER)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(page(Path(sys.argv[1]).read_bytes())))
