"""The resync: finds what a broken watch has missed, and looks at every model again.

Soon after a kind was listed anew, since a watch could not go on from where it was; and rarely
without any such sign.
A watch that no longer tells of changes ends the process, since a restart is what cures it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from speculative_operator.cluster.audit import Scope, audit, forget, still_unseen
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import MODEL, Reference
from speculative_operator.errors import ClusterFault

RESYNC_SECONDS: Final = 1800.0
LISTING_SECONDS: Final = 3.0
"""From the first object of a new listing to the last of all kinds: they break together."""

CATCHING_UP_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


class WatchStale(ClusterFault):
    """A watch has told nothing of a change for a minute, though its stream is open."""


async def resync(
    client: Client,
    cache: Cache,
    scope: Scope,
    again: Callable[[Reference], None],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Until cancelled. Raises WatchStale."""
    cache.listed.clear()
    while True:
        await _due(cache.listed, sleep)
        try:
            findings = await audit(client, cache, scope)
        except ClusterFault as fault:
            logger.warning("no resync now: %s", fault)
            cache.listed.set()
            continue
        forget(cache, findings.gone)
        for copy in findings.gone:
            if copy.reference.kind == MODEL.kind:
                again(copy.reference)
        for model in cache.models():
            again(model)
        if findings.unseen:
            await sleep(CATCHING_UP_SECONDS)
            if late := still_unseen(cache, findings.unseen):
                raise WatchStale(f"{late[0][0]} changed a minute ago, and no watch has told of it")


async def _due(listed: asyncio.Event, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Returns after half an hour, or once a new listing is over."""
    if not listed.is_set():
        rarely = asyncio.ensure_future(sleep(RESYNC_SECONDS))
        soon = asyncio.ensure_future(listed.wait())
        try:
            await asyncio.wait((rarely, soon), return_when=asyncio.FIRST_COMPLETED)
            if rarely.done():
                return rarely.result()
        finally:
            rarely.cancel()
            soon.cancel()
    await sleep(LISTING_SECONDS)
    listed.clear()
    return None
