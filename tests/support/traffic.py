"""Load in a thread of its own, so that a test can watch the cluster meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from local.load import Load, LoadPlan, LoadReport
from tests.support.reached import reach

LONGEST = 600.0
"""Seconds after which a forgotten load ends by itself."""


@contextmanager
def traffic(
    url: str,
    model: str,
    concurrency: int,
    max_tokens: int = 128,
    *,
    temperature: float = 0.0,
    abandoned: bool = False,
) -> Iterator[LoadReport]:
    """Steady load on `url` for as long as the body runs; the report grows meanwhile. At its end the
    requests under way are waited for, or `abandoned`: an engine that hangs answers none."""
    reach(url)
    plan = LoadPlan(
        url=url,
        concurrency=concurrency,
        duration=LONGEST,
        max_tokens=max_tokens,
        prompt_words=8,
        model=model,
        temperature=temperature,
    )
    loop = asyncio.new_event_loop()
    running = loop.run_until_complete(_made(plan))
    sending = loop.create_task(running.run())
    thread = threading.Thread(target=lambda: _until_ended(loop, sending), daemon=True)
    thread.start()
    try:
        yield running.report
    finally:
        loop.call_soon_threadsafe(sending.cancel if abandoned else running.stop)
        thread.join(timeout=plan.request_timeout)
        loop.close()


def _until_ended(loop: asyncio.AbstractEventLoop, sending: asyncio.Task[LoadReport]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        loop.run_until_complete(sending)


async def _made(plan: LoadPlan) -> Load:
    return Load(plan)
