"""Reads an answer's body, whoever it comes from."""

from __future__ import annotations

import aiohttp

from speculative_operator.engine.unreadable import PageUnreadable

MOST_BYTES = 4 * 1024 * 1024
"""vLLM's own page with many adapters stays below this, and so does what Prometheus has of a pod."""


async def whole(content: aiohttp.StreamReader) -> bytes:
    """All of it; PageUnreadable where it is absurdly large, of which no more is read."""
    parts = []
    size = 0
    async for part in content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise PageUnreadable(f"more than {MOST_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)
