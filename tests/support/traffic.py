"""Load in a thread of its own, so that a test can watch the cluster meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from local.load import Load, LoadPlan, LoadReport

LONGEST = 600.0
"""Seconds after which a forgotten load ends by itself."""


@contextmanager
def traffic(
    url: str, model: str, concurrency: int, max_tokens: int = 128, *, temperature: float = 0.0
) -> Iterator[LoadReport]:
    """Steady load on `url` for as long as the body runs; the report grows meanwhile."""
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
    thread = threading.Thread(target=lambda: loop.run_until_complete(running.run()), daemon=True)
    thread.start()
    try:
        yield running.report
    finally:
        loop.call_soon_threadsafe(running.stop)
        thread.join(timeout=plan.request_timeout)
        loop.close()


async def _made(plan: LoadPlan) -> Load:
    return Load(plan)
