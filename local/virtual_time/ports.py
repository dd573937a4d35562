"""The tuner's ports without cluster and sockets: pages in process, schedules through folders."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from local.simulated_engine.faults import PageUnreachable
from local.virtual_time.engine import VirtualEngine
from speculative_operator.controller.tuner.ports import Replica, TunedModel, TuningView
from speculative_operator.engine.state_page import parse_state
from speculative_operator.engine.vllm_metrics import parse_vllm_metrics
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.memory import Memory, MemoryData, from_data, to_data
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.verdict import Notice

DELAY = 0.4
"""Seconds from the write of a schedule to its file in the pod, as seen on a real node."""


@dataclass
class Fleet:
    """The models there are now; a test replaces them."""

    models: tuple[TunedModel, ...] = ()

    def targets(self) -> Sequence[TunedModel]:
        return self.models


@dataclass
class Pages:
    """Pages as text through the product's own parser. `engines` are found by pod UID."""

    engines: Mapping[str, VirtualEngine]

    async def read(self, model: TunedModel, replica: Replica) -> Page:
        """The plugin's page, or vLLM's own where the plugin does not measure. Raises EngineSilent,
        both as the HTTP client does."""
        now = asyncio.get_running_loop().time()
        engine = self.engines[replica.uid]
        try:
            page = parse_state(engine.page(now))
        except PageUnreachable as error:
            raise EngineSilent(f"{replica.name}: {error}") from error
        if page.measured:
            return page
        own = parse_vllm_metrics(engine.vllm_metrics(now))
        return replace(own, plugin=page.plugin, vllm=page.vllm, reason=page.reason)


@dataclass
class Schedules:
    """One text a model, which reaches every engine's folder `delay` seconds later."""

    engines: Mapping[str, VirtualEngine]
    delay: float = DELAY
    lost: int = 0
    """So many of the next deliveries never arrive, as when the kubelet's watches race."""
    written: list[str] = field(default_factory=list)
    """Every different text so far."""
    attempts: list[int] = field(default_factory=list)
    """The attempt of every write."""
    _kept: set[asyncio.Task[None]] = field(default_factory=set)

    async def read(self, model: TunedModel) -> str | None:
        del model
        return self.written[-1] if self.written else None

    async def write(self, model: TunedModel, text: str, attempt: int) -> None:
        self.attempts.append(attempt)
        if not self.written or self.written[-1] != text:
            self.written.append(text)
        for replica in model.replicas:
            task = asyncio.create_task(self._deliver(self.engines[replica.uid], text))
            self._kept.add(task)
            task.add_done_callback(self._kept.discard)

    async def _deliver(self, engine: VirtualEngine, text: str) -> None:
        if self.lost:
            self.lost -= 1
            return
        await asyncio.sleep(self.delay)
        engine.write_schedule(asyncio.get_running_loop().time(), text)


@dataclass
class Memories:
    """Keeps what the ConfigMap would: the two maps of texts, not the objects."""

    kept: dict[str, MemoryData] = field(default_factory=dict)
    saves: int = 0

    async def load(self, model: TunedModel) -> Memory:
        saved = self.kept.get(model.uid)
        return from_data(saved.data, saved.binary_data) if saved else Memory()

    async def save(self, model: TunedModel, memory: Memory) -> None:
        self.kept[model.uid] = to_data(memory)
        self.saves += 1

    def is_empty(self, model: TunedModel) -> bool:
        return model.uid not in self.kept


@dataclass
class Record:
    """Everything that the tuner said, with the loop's time."""

    views: list[tuple[float, TuningView]] = field(default_factory=list)
    notices: list[tuple[float, Notice]] = field(default_factory=list)

    def tuning(self, model: TunedModel, view: TuningView) -> None:
        del model
        self.views.append((asyncio.get_running_loop().time(), view))

    def notice(self, model: TunedModel, notice: Notice) -> None:
        del model
        self.notices.append((asyncio.get_running_loop().time(), notice))
