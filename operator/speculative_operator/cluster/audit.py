"""Whether the watched copies are what the API server has.

At the start a listing says when the copies are complete: nothing may be reconciled before, or a
model would be rendered without its recorded revisions. Later it finds what a broken watch missed:
after a gap kopf lists anew and never tells of what was deleted meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from speculative_operator.cluster.cache import Cache, Copy
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.manifests import Reference, reference_of
from speculative_operator.errors import ClusterFault

POLL_SECONDS: Final = 0.2
PATIENCE_SECONDS: Final = 5.0
"""After which a listing is made anew: objects may have been deleted since the last one."""


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scope:
    """What is watched: kinds with their label selectors, in these namespaces or in all (None)."""

    selectors: tuple[tuple[str, str], ...]
    namespaces: tuple[str | None, ...]


@dataclass(frozen=True)
class Findings:
    """Where copies and API server disagree: copies of objects that are gone, and objects of which
    the copy is missing or older, with their versions."""

    gone: tuple[Copy, ...]
    unseen: tuple[tuple[Reference, int], ...]


async def audit(client: Client, cache: Cache, scope: Scope) -> Findings:
    """One listing of everything, metadata only. What changes during it is not counted."""
    gone: list[Copy] = []
    unseen: list[tuple[Reference, int]] = []
    for kind, selector in scope.selectors:
        before = {copy.reference: copy for copy in cache.of_kind(kind)}
        for namespace in scope.namespaces:
            listed = await client.list_metadata(kind, namespace, selector)
            versions = {
                reference_of(item): (
                    item["metadata"]["uid"],
                    int(item["metadata"]["resourceVersion"]),
                )
                for item in listed
            }
            gone += [
                copy
                for reference, copy in before.items()
                if namespace in (None, reference.namespace)
                and versions.get(reference, ("", 0))[0] != copy.uid
                and cache.get(reference) is copy
            ]
            unseen += [
                (reference, version)
                for reference, (uid, version) in versions.items()
                if _older(cache, reference, version) and not cache.is_deleted(uid)
            ]
    return Findings(tuple(gone), tuple(unseen))


async def until_complete(
    client: Client,
    cache: Cache,
    scope: Scope,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Returns once the copies are of all that stands in the cluster, and of nothing else: a standby
    may have watched for days."""
    while True:
        try:
            findings = await audit(client, cache, scope)
        except ClusterFault as fault:
            logger.warning("cannot list what there is: %s", fault)
            await sleep(PATIENCE_SECONDS)
            continue
        forget(cache, findings.gone)
        waited = 0.0
        while waited < PATIENCE_SECONDS and still_unseen(cache, findings.unseen):
            await sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        late = still_unseen(cache, findings.unseen)
        if not late:
            cache.forget_lost()
            logger.info("the watched copies are complete")
            return
        logger.info("the watch has not told of %d objects yet, as of %s", len(late), late[0][0])


def forget(cache: Cache, gone: Iterable[Copy]) -> None:
    """Drops the copies of objects of which no watch has told that they were deleted."""
    for copy in gone:
        logger.warning("%s is gone, and no watch has told of it", copy.reference)
        cache.remove(copy.reference, copy.uid)


def still_unseen(
    cache: Cache, objects: Sequence[tuple[Reference, int]]
) -> Sequence[tuple[Reference, int]]:
    """Those of which the copy is missing or older."""
    return [
        (reference, version) for reference, version in objects if _older(cache, reference, version)
    ]


def _older(cache: Cache, reference: Reference, version: int) -> bool:
    copy = cache.get(reference)
    return copy is None or copy.version < version
