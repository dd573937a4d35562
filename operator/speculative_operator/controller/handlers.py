"""How kopf's watching reaches us: event handlers store copies and put keys into the queue.

Nothing else of kopf is used, so it writes no annotation, no progress and no finalizer into
anybody's object, and nothing is retried behind our back. Its indices are left out too: they cost
half of an event, and `cluster.audit` says better when the copies are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import kopf

from speculative_operator.api.base import GROUP
from speculative_operator.api.names import FIELD_MANAGER, LABEL_MANAGED_BY
from speculative_operator.cluster.audit import Scope
from speculative_operator.cluster.cache import Cache, model_uid_of
from speculative_operator.cluster.manifests import (
    CHILD_KINDS,
    MODEL,
    RESOURCES,
    Reference,
    controller_of,
    reference_of,
)

WATCHED: Final = (MODEL, *(RESOURCES[kind] for kind in (*CHILD_KINDS, "Pod")))
OURS: Final = f"{LABEL_MANAGED_BY}={FIELD_MANAGER}"
"""Selects all that belongs to models, and nothing else: copies of foreign objects cost memory."""

CHUNK: Final = 100
"""Objects in one answer to a listing by kopf. All kinds are listed at once, and parsed they take
ten times the memory of their copies."""

IDLE_SECONDS: Final = 0.5
"""So long after its last event kopf holds an object as parsed; at the start that is each one."""

EXIT_SECONDS: Final = 20


def scope_of(namespaces: tuple[str, ...]) -> Scope:
    """The same for an audit of the copies."""
    return Scope(
        selectors=((MODEL.kind, ""), *((resource.kind, OURS) for resource in WATCHED[1:])),
        namespaces=namespaces or (None,),
    )


class Watcher:
    """Feeds the copies, and tells which model has news."""

    def __init__(self, cache: Cache, again: Callable[[Reference], None]) -> None:
        self._cache = cache
        self._again = again

    def registry(self) -> kopf.OperatorRegistry:
        """One handler for the models and everything that belongs to them."""
        registry = kopf.OperatorRegistry()
        for resource in WATCHED:
            where = (resource.group, resource.version, resource.plural)
            kopf.on.event(*where, registry=registry, id=resource.plural)(self._take)
        return registry

    async def _take(self, event: kopf.RawEvent, **_: object) -> None:
        body = event["object"]
        if event["type"] is None:
            self._cache.listed.set()
        if event["type"] == "DELETED":
            news = self._cache.remove(reference_of(body), body["metadata"]["uid"])
        else:
            news = self._cache.put(body)
        if news and (model := self._model_of(body)) is not None:
            self._again(model)

    def _model_of(self, body: Mapping[str, Any]) -> Reference | None:
        if body["kind"] == MODEL.kind:
            return reference_of(body)
        owner = controller_of(body)
        if owner is not None and owner.get("kind") == MODEL.kind:
            return Reference(MODEL.kind, body["metadata"]["namespace"], owner["name"])
        uid = model_uid_of(body)
        return self._cache.model(uid) if uid is not None else None


def watch_settings() -> kopf.OperatorSettings:
    """kopf as a watcher: no scanning of the cluster, bounded requests, an end within the grace."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 60
    settings.watching.chunk_size = CHUNK
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.process.ultimate_exiting_timeout = EXIT_SECONDS
    settings.persistence.finalizer = f"{GROUP}/unused"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = NoDiff(prefix=GROUP)
    for resource in WATCHED[1:]:
        key = (resource.group, resource.version, resource.plural)
        settings.watching.label_selectors[key] = OURS
    return settings


class NoDiff(kopf.AnnotationsDiffBaseStorage):
    """kopf works out for each event what changed, which nobody here asks."""

    def build(self, **_: object) -> kopf.BodyEssence:
        """Nothing of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: object) -> kopf.BodyEssence | None:
        """Nothing was stored."""
        return None
