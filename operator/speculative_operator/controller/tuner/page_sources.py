"""The tuner's port `Pages`: reads an engine where its model says, counted and timed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from speculative_operator.api.tuning import MetricsSource
from speculative_operator.controller.tuner.ports import Replica, TunedModel
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import Page

Timed = Callable[[str, Awaitable[Page]], Awaitable[Page]]
"""Is given the source's name and the reading."""


class Engines(Protocol):
    """Reads an engine's page; EngineSilent where there is none."""

    async def read(self, replica: Replica) -> Page: ...


class Scraped(Protocol):
    """Reads what was scraped of a pod; EngineSilent where there is nothing."""

    async def read(self, namespace: str, pod: str) -> Page: ...


class PageSources:
    """Engines themselves, and a Prometheus where the installation names one."""

    def __init__(self, engines: Engines, prometheus: Scraped | None, timed: Timed) -> None:
        self._engines = engines
        self._prometheus = prometheus
        self._timed = timed

    async def read(self, model: TunedModel, replica: Replica) -> Page:
        """The engine's page."""
        return await self._timed(model.source.value, self._reading(model, replica))

    async def _reading(self, model: TunedModel, replica: Replica) -> Page:
        match model.source:
            case MetricsSource.PODS:
                return await self._engines.read(replica)
            case MetricsSource.PROMETHEUS if self._prometheus is not None:
                return await self._prometheus.read(model.namespace, replica.name)
            case MetricsSource.PROMETHEUS:
                raise EngineSilent(
                    "this operator knows no Prometheus: set the chart's value "
                    "monitoring.prometheus.url, or write spec.tuning.source: Pods"
                )
