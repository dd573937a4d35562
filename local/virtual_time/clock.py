"""An asyncio event loop whose time jumps: waiting for an hour takes no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

EPOCH = 1_800_000_000.0
"""Unix time at which virtual time starts."""

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Never blocks: the time that the loop would have waited is over at once."""

    jump: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits for another and no timer is set")
            self.jump(max(timeout, 0.0))
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time()` starts at 0 and moves only while every task waits."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        selector.jump = self._jump
        self._seconds = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._seconds

    def _jump(self, seconds: float) -> None:
        self._seconds += seconds


class VirtualClock:
    """Unix time in a `VirtualLoop`, and waiting in it."""

    def now(self) -> float:
        """Unix seconds."""
        return EPOCH + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(play: Coroutine[Any, Any, Result]) -> Result:
    """Runs `play` in virtual time to its end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play)
