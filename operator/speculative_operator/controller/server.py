"""The operator's own HTTP server: probes and metrics, from the start of the process.

kopf's own endpoint does not exist on a standby and hangs when a check fails.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


class Server:
    """Serves /healthz, /readyz and /metrics while its context is open."""

    def __init__(
        self, port: int, metrics: CollectorRegistry, *, unready: Callable[[], str]
    ) -> None:
        """`unready` says why this process is not ready; nothing when it is."""
        self._port = port
        self._metrics = metrics
        self._unready = unready
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._serve_metrics),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, None, self._port).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        """That the event loop answers is all that is asked: a dead task ends the process."""
        return web.Response(text="ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        why_not = self._unready()
        return web.Response(status=503, text=why_not) if why_not else web.Response(text="ok")

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        page = generate_latest(self._metrics)
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE_LATEST})
