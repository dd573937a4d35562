"""The tuner's ports over Kubernetes: schedules and memory in ConfigMaps, reports to reconcile."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from dataclasses import dataclass

from speculative_operator.api.names import ANNOTATION_SCHEDULE
from speculative_operator.cluster.cache import Cache, Copy
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.events import Event, EventRecorder
from speculative_operator.cluster.manifests import MODEL, Reference
from speculative_operator.controller.seen.observed import observe
from speculative_operator.controller.tuner.fleet import ModelFleet
from speculative_operator.controller.tuner.ports import TunedModel, TuningView
from speculative_operator.errors import ClusterFault
from speculative_operator.plan.environment import SCHEDULE_KEY
from speculative_operator.plan.names import Owner, model_names, revision_names
from speculative_operator.tuning.memory import Memory, from_data, to_data
from speculative_operator.tuning.schedule import schedule_hash
from speculative_operator.tuning.verdict import Notice


class WallClock:
    """Unix time."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class KubernetesSchedules:
    """The schedule ConfigMap of a model's revision, and the mark on its pods."""

    cache: Cache
    children: Children

    async def read(self, model: TunedModel) -> str | None:
        """The text that stands; None while the ConfigMap is not there."""
        copy = self._config_map(model)
        return _text(copy) if copy is not None else None

    async def write(self, model: TunedModel, text: str, attempt: int) -> None:
        """Writes the text if another stands, then marks the revision's pods.

        Only over the text that was seen: whoever leads by now may have written a newer one.
        """
        copy = self._config_map(model)
        if copy is None:
            raise ClusterFault(f"{_model(model)}: its schedule ConfigMap is not there yet")
        if _text(copy) != text:
            await self.children.change(copy, {"data": {SCHEDULE_KEY: text}})
        mark = f"{schedule_hash(text)}.{attempt}"
        seen = observe(self.cache.children(model.uid))
        for pod in seen.pods_of(model.key):
            if pod.alive and pod.schedule_mark != mark:
                identity = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
                change = {"metadata": {"annotations": {ANNOTATION_SCHEDULE: mark}}}
                await self.children.patch("Pod", {"metadata": identity}, change)

    def _config_map(self, model: TunedModel) -> Copy | None:
        names = revision_names(_owner(model), model.key)
        return self.cache.get(Reference("ConfigMap", model.namespace, names.schedule))


@dataclass(frozen=True)
class KubernetesMemory:
    """The ConfigMap `<name>-tuning`."""

    cache: Cache
    children: Children

    async def load(self, model: TunedModel) -> Memory:
        """What was saved. The copies leave the data out, so a memory that has some is read."""
        copy = self.cache.get(self._reference(model))
        if copy is None or self.is_empty(model):
            return Memory()
        found = await self.children.client.find(copy.reference)
        if found is None:
            return Memory()
        binary = {
            key: base64.b64decode(value) for key, value in found.get("binaryData", {}).items()
        }
        return from_data(found.get("data", {}), binary)

    async def save(self, model: TunedModel, memory: Memory) -> None:
        """Writes all of it, over what was seen only; reconcile makes the ConfigMap, so one that is
        missing waits for it."""
        copy = self.cache.get(self._reference(model))
        if copy is None:
            raise ClusterFault(f"{_model(model)}: its memory ConfigMap is not there yet")
        written = to_data(memory)
        binary = {
            key: base64.b64encode(value).decode() for key, value in written.binary_data.items()
        }
        change = {"data": dict(written.data), "binaryData": binary}
        await self.children.change(copy, change)

    def is_empty(self, model: TunedModel) -> bool:
        """Whether the ConfigMap stands without data."""
        copy = self.cache.get(self._reference(model))
        return copy is not None and not copy.manifest().get("stored")

    def _reference(self, model: TunedModel) -> Reference:
        return Reference("ConfigMap", model.namespace, model_names(_owner(model)).memory)


@dataclass(frozen=True)
class KubernetesReport:
    """Views go to the next pass, which writes status; notices become Events."""

    fleet: ModelFleet
    events: EventRecorder
    again: Callable[[Reference], None]

    def tuning(self, model: TunedModel, view: TuningView) -> None:
        """What is now known of a model."""
        self.fleet.put_view(model.uid, view)
        self.again(_model(model))

    def notice(self, model: TunedModel, notice: Notice) -> None:
        """One Event."""
        self.events.tell(
            Event(_model(model), model.uid, notice.reason, notice.message, notice.warning)
        )


def _text(config_map: Copy) -> str | None:
    text: str | None = config_map.manifest().get("data", {}).get(SCHEDULE_KEY)
    return text


def _model(model: TunedModel) -> Reference:
    return Reference(MODEL.kind, model.namespace, model.name)


def _owner(model: TunedModel) -> Owner:
    return Owner(model.name, model.namespace, model.uid)
