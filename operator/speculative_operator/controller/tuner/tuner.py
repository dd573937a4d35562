"""The tuner's loop: one task for all models.

Each pass of a model: read its ready engines, decide at the end of a window, save what was decided,
write the schedule, tell. A pass is due when a window can end, so an idle model costs little; the
whole fleet is never read faster than READS_A_SECOND. An error of one model concerns that model.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from speculative_operator.controller.tuner.answers import read_all
from speculative_operator.controller.tuner.model import ModelTuning
from speculative_operator.controller.tuner.ports import Ports, Replica, TunedModel, TuningView
from speculative_operator.errors import OperatorError
from speculative_operator.tuning.page import Page

TICK_SECONDS = 1.0
READS_A_SECOND = 200.0
"""Pages that one operator reads: with 5,000 engines each is read every 25 s."""

READS_AT_ONCE = 80
"""Below the connections of one aiohttp session, 100, which the question for names shares."""

SAVES_A_SECOND = 2.0
"""Saves that no decision asks for, over all models."""

FAULT_SECONDS = 5.0
"""After an error of the cluster the model is tended again."""

Lease = Callable[[], tuple[str, int] | None]

log = logging.getLogger(__name__)


class Tuner:
    """Tunes every model of a fleet through its ports."""

    def __init__(self, ports: Ports, *, lease: Lease = lambda: None) -> None:
        """`lease` gives the Lease (UID, transitions) under which this operator acts, if any."""
        self._ports = ports
        self._clock = ports.clock
        self._lease = lease
        self._models: dict[str, ModelTuning] = {}
        self._told: dict[str, TuningView] = {}
        self._retry_at: dict[str, float] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self._next_save = 0.0

    async def run(self) -> None:
        """Until cancelled. A slow engine delays its own model only."""
        try:
            while True:
                self._start_passes()
                await self._clock.sleep(TICK_SECONDS)
        finally:
            busy = tuple(self._busy.values())
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    async def tick(self) -> None:
        """One pass of every model that is due, to its end."""
        self._start_passes()
        await asyncio.gather(*self._busy.values())

    def _start_passes(self) -> None:
        now = self._clock.now()
        targets = {model.uid: model for model in self._ports.fleet.targets()}
        for gone in self._models.keys() - targets.keys():
            del self._models[gone]
            self._told.pop(gone, None)
            self._retry_at.pop(gone, None)
        pace = (
            sum(len(model.replicas) + len(model.plain) for model in targets.values())
            / READS_A_SECOND
        )
        for uid, model in targets.items():
            if uid not in self._busy and self._due(model, now):
                self._busy[uid] = asyncio.create_task(self._guarded_pass(model, pace))

    def _due(self, model: TunedModel, now: float) -> bool:
        if now < self._retry_at.get(model.uid, 0.0):
            return False
        known = self._models.get(model.uid)
        return known is None or now >= known.next_pass or _edited(known.model, model)

    async def _guarded_pass(self, model: TunedModel, pace: float) -> None:
        try:
            await self._pass(model, pace)
            self._retry_at.pop(model.uid, None)
        except OperatorError as error:
            self._retry_at[model.uid] = self._clock.now() + FAULT_SECONDS
            log.warning("tuning of %s/%s waits: %s", model.namespace, model.name, error)
        except Exception:
            self._retry_at[model.uid] = self._clock.now() + FAULT_SECONDS
            log.exception("tuning of %s/%s failed", model.namespace, model.name)
        finally:
            self._busy.pop(model.uid, None)

    async def _pass(self, model: TunedModel, pace: float) -> None:
        tuning = self._models.get(model.uid)
        if tuning is None or tuning.model.key != model.key:
            memory = await self._ports.memories.load(model)
            tuning = ModelTuning(model, memory, self._clock.now())
            self._models[model.uid] = tuning
        ready = (replica for replica in (*model.replicas, *model.plain) if replica.ready)
        answers = await read_all(ready, partial(self._read, model))
        tuning.observe(model, answers, now=self._clock.now(), pace=pace)
        try:
            await self._save(tuning)
            await self._hand_on(tuning)
        finally:
            self._tell(tuning)

    async def _read(self, model: TunedModel, replica: Replica) -> Page:
        async with self._reads:
            return await self._ports.pages.read(model, replica)

    async def _save(self, tuning: ModelTuning) -> None:
        """A decision at once, other news when it is this model's turn."""
        now = self._clock.now()
        if tuning.is_saved and self._ports.memories.is_empty(tuning.model):
            tuning.memory_lost()
        memory = tuning.memory_to_save(now)
        if memory is None:
            return
        if not tuning.has_decided:
            if now < self._next_save:
                return
            self._next_save = now + 1 / SAVES_A_SECOND
        await self._ports.memories.save(tuning.model, memory)
        tuning.memory_saved(memory)

    async def _hand_on(self, tuning: ModelTuning) -> None:
        current = await self._ports.schedules.read(tuning.model)
        due = tuning.schedule_to_write(current, self._lease(), self._clock.now())
        if due is not None:
            text, attempt = due
            await self._ports.schedules.write(tuning.model, text, attempt)
            tuning.schedule_written(self._clock.now())

    def _tell(self, tuning: ModelTuning) -> None:
        model = tuning.model
        view = tuning.view(self._clock.now())
        if self._told.get(model.uid) != view:
            self._told[model.uid] = view
            self._ports.report.tuning(model, view)
        for notice in tuning.take_notices():
            self._ports.report.notice(model, notice)


def _edited(known: TunedModel, model: TunedModel) -> bool:
    """Whether the user changed something that is obeyed at once, or a pod came or went."""
    return known != model
