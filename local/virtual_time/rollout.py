"""Pods of the variant that the tuner wants, one after the other, as the cluster would make them.

async with scene.playing(), rolling(scene, startup=90.0) as rollout:
    await scene.pass_seconds(3600)
    print(rollout.tokens())
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import asdict, replace

from local.virtual_time.scene import Scene
from speculative_operator.controller.tuner.ports import Replica
from speculative_operator.tuning.variant import Variant


class Rollout:
    """In place: an old pod goes, and `startup` seconds later the new one is ready. The clients of a
    pod wait so long; none of them goes to another pod."""

    def __init__(self, scene: Scene, startup: float) -> None:
        self.moves: list[Variant] = []
        """What the tuner has asked for, one after the other."""
        self._scene = scene
        self._startup = startup
        self._started = len(scene.engines)
        self._tokens = 0.0

    def tokens(self) -> float:
        """All that were generated so far, by engines that have ended too."""
        now = asyncio.get_running_loop().time()
        return self._tokens + sum(each.generated(now) for each in self._scene.engines.values())

    async def run(self) -> None:
        """Until it is cancelled."""
        (model,) = self._scene.fleet.models
        self._scene.fleet.models = (replace(model, startup=self._startup),)
        variant = Variant.SPECULATIVE
        while True:
            await asyncio.sleep(1.0)
            if not self._scene.record.views:
                continue
            choice = self._scene.view.choice
            if choice.variant is not variant:
                variant = choice.variant
                self.moves.append(variant)
            (model,) = self._scene.fleet.models
            replicas = len(model.replicas) + len(model.plain)
            wanted = replicas if variant is Variant.SPECULATIVE else int(choice.sensor)
            if len(model.replicas) != wanted:
                await self._replace_one(leaves=len(model.replicas) > wanted)

    async def _replace_one(self, *, leaves: bool) -> None:
        scene = self._scene
        (model,) = scene.fleet.models
        gone = (model.replicas if leaves else model.plain)[0]
        self._hold(without=gone)
        old = scene.engines.pop(gone.uid)
        self._tokens += old.generated(asyncio.get_running_loop().time())
        await asyncio.sleep(self._startup)
        uid = f"pod-{self._started}"
        new = scene.engines[uid] = scene.engine(self._started, speculative=not leaves)
        self._started += 1
        now = asyncio.get_running_loop().time()
        new.restart(now)
        new.change(now, **asdict(old.world))
        new.send(now, old.traffic)
        (model,) = scene.fleet.models
        pod = Replica(uid, uid, uid, ready=True, routed=True)
        if leaves:
            scene.fleet.models = (replace(model, plain=(*model.plain, pod)),)
        else:
            scene.fleet.models = (replace(model, replicas=(*model.replicas, pod)),)

    def _hold(self, *, without: Replica) -> None:
        (model,) = self._scene.fleet.models
        replicas = tuple(pod for pod in model.replicas if pod != without)
        plain = tuple(pod for pod in model.plain if pod != without)
        self._scene.fleet.models = (replace(model, replicas=replicas, plain=plain),)


@contextlib.asynccontextmanager
async def rolling(scene: Scene, startup: float) -> AsyncIterator[Rollout]:
    """The tuner's choice is carried out until the body is left."""
    rollout = Rollout(scene, startup)
    task = asyncio.create_task(rollout.run())
    try:
        yield rollout
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
