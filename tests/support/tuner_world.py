"""The tuner's ports as small objects of the real behaviour, under a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from speculative_operator.controller.tuner.ports import Ports, Replica, TunedModel, TuningView
from speculative_operator.controller.tuner.tuner import TICK_SECONDS, Tuner
from speculative_operator.errors import ClusterFault, EngineSilent
from speculative_operator.tuning.memory import Memory, MemoryData, from_data, to_data
from speculative_operator.tuning.page import (
    Counts,
    Page,
    Phase,
    Position,
    Proposed,
    RowKey,
    TrialLeft,
)
from speculative_operator.tuning.schedule import ScheduleFile, length_at, schedule_hash
from speculative_operator.tuning.verdict import Notice
from speculative_operator.tuning.window import Window, merged
from tests.support.windows import Traffic, a_page, a_policy

STEPS_A_SECOND = 80
ROUNDS = 5
"""Seconds for which an engine plays a look."""


class Engine:
    """Plays the schedule that it was handed; its page can be made silent or any other page. A
    `plain` one was started without speculation."""

    def __init__(self) -> None:
        self.traffic: Traffic | None = Traffic()
        self.schedule: ScheduleFile | None = None
        self.takes_up = True
        self.plain = False
        self.hangs = False
        self.drafts = True
        self.silence: EngineSilent | None = None
        self.changes: dict[str, object] = {}
        self.plugin = True
        self._text: str | None = None
        self._done = Window(seconds=0.0)
        self._idle = 0.0
        self._look_left = 0

    def hand(self, text: str) -> None:
        if self.takes_up and text != self._text:
            self._text = text
            self.schedule = ScheduleFile.read(text)
            self._look_left = ROUNDS

    def pass_second(self) -> None:
        if self.traffic is None or self.hangs:
            self._idle += 1.0
            return
        self._idle = 0.0
        k = length_at(self.schedule.table, self.traffic.batch) if self.schedule else 4
        k = 0 if self.plain else k
        if not self.drafts:
            self._done = merged([self._done, undrafted(self.traffic.window({k: STEPS_A_SECOND}))])
            return
        steps = {k: STEPS_A_SECOND}
        trials = self.schedule.trials if self.schedule and self._look_left else ()
        for trial in trials:
            for arm in trial.arms:
                steps[arm] = 4
        self._look_left = max(self._look_left - 1, 0)
        self._done = merged([self._done, self.traffic.window(steps)])

    def page(self) -> Page:
        if self.silence is not None:
            raise self.silence
        digest = schedule_hash(self._text) if self._text else None
        trials = self.schedule.trials if self.schedule else ()
        page = a_page(
            self._done,
            running=self.traffic.batch if self.traffic else 0,
            idle_seconds=self._idle,
            hash_read=digest,
            hash_in_force=digest if self.traffic else None,
            trials=tuple(TrialLeft(*trial.batch, self._look_left) for trial in trials),
            tunable=not self.plain,
        )
        if not self.plugin:
            page = without_plugin(page)
        return replace(page, **self.changes)  # type: ignore[arg-type]


def undrafted(window: Window) -> Window:
    """Of an engine whose speculation went silent: as many steps at the same K, and no drafts."""
    rows = {
        key: row._replace(drafts=0, draft_tokens=0, accepted=0, generated=row.requests)
        for key, row in window.rows.items()
    }
    return replace(window, rows=rows, positions={})


def without_plugin(page: Page) -> Page:
    """What vLLM's own metrics show of the same engine: sums without K and batch, and the times of
    all steps as requests see them."""
    sums, waited = Counts(), 0.0
    for row in page.counters.rows.values():
        sums = sums.plus(row)
        waited += row.seconds * row.requests / row.steps
    accepted = [0.0] * page.capacity
    for at, tokens in page.counters.positions.items():
        accepted[at.at] += tokens.accepted
    row = Counts(
        steps=sums.steps,
        seconds=waited,
        drafts=sums.drafts,
        draft_tokens=sums.draft_tokens,
        accepted=sums.accepted,
        generated=sums.generated,
        requests=sums.requests,
    )
    counters = replace(
        page.counters,
        rows={RowKey(page.capacity if sums.drafts else 0, None, Phase.ANY): row},
        positions={
            Position(page.capacity, at): Proposed(sums.drafts, count)
            for at, count in enumerate(accepted)
            if sums.drafts
        },
    )
    return replace(page, plugin="", tunable=False, reason="no plugin", counters=counters)


@dataclass
class World:
    """Everything around a tuner. `log` has what was done to the cluster, in order."""

    models: list[TunedModel] = field(default_factory=list)
    engines: dict[str, Engine] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    memories: dict[str, MemoryData] = field(default_factory=dict)
    views: dict[str, TuningView] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    log: list[tuple[str, str]] = field(default_factory=list)
    reads: list[tuple[float, str]] = field(default_factory=list)
    time: float = 1000.0
    fault: ClusterFault | None = None

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)

    def targets(self) -> Sequence[TunedModel]:
        return tuple(self.models)

    def ports(self) -> Ports:
        return Ports(
            clock=self,
            fleet=self,
            pages=_Pages(self),
            schedules=_Schedules(self),
            memories=_Memories(self),
            report=_Report(self),
        )


@dataclass
class _Pages:
    world: World

    async def read(self, model: TunedModel, replica: Replica) -> Page:
        self.world.reads.append((self.world.time, replica.uid))
        return self.world.engines[replica.uid].page()


@dataclass
class _Schedules:
    world: World

    async def read(self, model: TunedModel) -> str | None:
        return self.world.texts.get(model.uid)

    async def write(self, model: TunedModel, text: str, attempt: int) -> None:
        self.world.log.append(("schedule", f"{schedule_hash(text)}.{attempt}"))
        if self.world.fault:
            raise self.world.fault
        self.world.texts[model.uid] = text
        for replica in model.replicas:
            self.world.engines[replica.uid].hand(text)


@dataclass
class _Memories:
    world: World

    async def load(self, model: TunedModel) -> Memory:
        data = self.world.memories.get(model.uid)
        return from_data(data.data, data.binary_data) if data else Memory()

    async def save(self, model: TunedModel, memory: Memory) -> None:
        self.world.log.append(("memory", model.key))
        if self.world.fault:
            raise self.world.fault
        self.world.memories[model.uid] = to_data(memory)

    def is_empty(self, model: TunedModel) -> bool:
        return model.uid not in self.world.memories


@dataclass
class _Report:
    world: World

    def tuning(self, model: TunedModel, view: TuningView) -> None:
        self.world.views[model.uid] = view

    def notice(self, model: TunedModel, notice: Notice) -> None:
        self.world.notices.append(notice)


def a_model(world: World, uid: str = "model", replicas: int = 1) -> TunedModel:
    """A model with its engines, put into the world."""
    names = [f"{uid}-{n}" for n in range(replicas)]
    pods = tuple(Replica(name, name, name, ready=True, routed=True) for name in names)
    world.engines |= {pod.uid: Engine() for pod in pods}
    model = TunedModel(
        uid=uid,
        namespace="default",
        name=uid,
        key="rev1",
        policy=a_policy(),
        scheduled=True,
        replicas=pods,
    )
    world.models.append(model)
    return model


async def pass_seconds(world: World, tuner: Tuner | None, seconds: float) -> None:
    """Time passes, engines work, and the tuner (if one runs) makes its passes."""
    for _ in range(round(seconds / TICK_SECONDS)):
        for engine in world.engines.values():
            engine.pass_second()
        world.time += TICK_SECONDS
        if tuner is not None:
            await tuner.tick()


def length(world: World, uid: str = "model", batch: int = 4) -> int:
    """K in the schedule that is written."""
    schedule = ScheduleFile.read(world.texts[uid])
    assert schedule is not None
    return length_at(schedule.table, batch)
