"""Virtual time: it jumps, keeps order, and never waits."""

from __future__ import annotations

import asyncio
import time

import pytest

from local.virtual_time.clock import EPOCH, VirtualClock, run


def test_a_day_passes_at_once() -> None:
    """Back-off over hours can be tested in milliseconds."""
    clock = VirtualClock()

    async def play() -> float:
        await clock.sleep(86_400)
        return clock.now()

    started = time.monotonic()
    assert run(play()) == EPOCH + 86_400
    assert time.monotonic() - started < 60


def test_tasks_wake_in_the_order_of_their_times() -> None:
    """Cause and effect must not change places."""
    woken = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def play() -> None:
        await asyncio.gather(*(sleeper(seconds) for seconds in (3.0, 1.0, 2.5, 0.1)))

    run(play())

    assert woken == [0.1, 1.0, 2.5, 3.0]


def test_a_timeout_is_virtual_too() -> None:
    """The product may use asyncio's own timeouts."""

    async def play() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(100), 7)
        return asyncio.get_running_loop().time()

    assert run(play()) == 7


def test_waiting_for_nothing_is_an_error_and_not_a_hang() -> None:
    """A deadlock in a scene should say so."""

    async def play() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="no timer is set"):
        run(play())
