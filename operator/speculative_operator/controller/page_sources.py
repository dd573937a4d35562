"""The tuner's port `Pages`: each reading is counted and timed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from speculative_operator.controller.tuner_ports import Replica, TunedModel
from speculative_operator.tuning.page import Page


class Reader(Protocol):
    """Reads one engine's page; EngineSilent where there is none."""

    async def read(self, replica: Replica) -> Page: ...


class PageSources:
    """Reads engines."""

    def __init__(
        self, pods: Reader, timed: Callable[[str, Awaitable[Page]], Awaitable[Page]]
    ) -> None:
        """`timed` is given the source's name and the reading."""
        self._pods = pods
        self._timed = timed

    async def read(self, model: TunedModel, replica: Replica) -> Page:
        """The engine's page."""
        del model
        return await self._timed("Pods", self._pods.read(replica))
