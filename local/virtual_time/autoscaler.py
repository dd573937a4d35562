"""A HorizontalPodAutoscaler over the engines of a scene, as Kubernetes has it.

async with scene.playing(), autoscaling(scene, rule, rate=6.0) as scaled:
    await scene.pass_seconds(3600)
    print(scaled.changes)
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, replace

from local.virtual_time.engine import Traffic, VirtualEngine
from local.virtual_time.scene import Scene
from speculative_operator.controller.tuner.ports import Replica

SYNC = 15.0
TOLERANCE = 0.1
"""Seconds, and a share: the defaults of kube-controller-manager."""

Metric = Callable[[int, int], int]
"""What is scaled on, from the requests of one engine that (run, wait)."""


def queue(running: int, waiting: int) -> int:
    """Requests that wait."""
    del running
    return waiting


def in_flight(running: int, waiting: int) -> int:
    """Requests that run or wait."""
    return running + waiting


@dataclass(frozen=True)
class Rule:
    """An external metric with a target of the kind AverageValue."""

    metric: Metric
    target: float
    """Of the metric, for each replica."""
    highest: int = 4
    up: float = 0.0
    down: float = 300.0
    """Stabilization windows in seconds, by default Kubernetes'."""

    def wanted(self, total: float, replicas: int) -> int:
        """How many replicas; the same number while the total is within the tolerance."""
        if abs(total / (self.target * replicas) - 1) <= TOLERANCE:
            return replicas
        return max(1, min(self.highest, math.ceil(total / self.target)))


class Autoscaling:
    """Pods come `startup` seconds after they are asked for; one that goes finishes its requests."""

    def __init__(self, scene: Scene, rule: Rule, rate: float, startup: float) -> None:
        self.changes: list[tuple[float, int]] = []
        """Seconds of the loop, and the number of replicas asked for then."""
        self._scene = scene
        self._rule = rule
        self._rate = rate
        self._startup = startup
        self._started = len(scene.engines)
        self._wanted = len(scene.engines)
        self._said = deque([(0.0, self._wanted)])
        self._coming: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until it is cancelled."""
        (model,) = self._scene.fleet.models
        self._route(model.replicas)
        while True:
            await asyncio.sleep(SYNC)
            now = self._now()
            loads = [engine.load(now) for engine in self._scene.engines.values()]
            said = self._rule.wanted(sum(self._rule.metric(*load) for load in loads), self._wanted)
            wanted = self._stable(now, said)
            if wanted != self._wanted:
                self.changes.append((now, wanted))
                self._scale(wanted)

    def _stable(self, now: float, said: int) -> int:
        """More only if all of the window of `up` said so, fewer only if all of that of `down`."""
        self._said.append((now, said))
        longest = max(self._rule.up, self._rule.down, SYNC)
        while now - self._said[0][0] > longest:
            self._said.popleft()
        rise = min(self._said_within(now, self._rule.up))
        fall = max(self._said_within(now, self._rule.down))
        return max(rise, min(self._wanted, fall))

    def _said_within(self, now: float, seconds: float) -> list[int]:
        """Of the last `seconds`, and of now."""
        return [number for at, number in self._said if at == now or now - at < seconds]

    def _scale(self, wanted: int) -> None:
        for _ in range(wanted - self._wanted):
            task = asyncio.create_task(self._start())
            self._coming.add(task)
            task.add_done_callback(self._coming.discard)
        if wanted < self._wanted:
            (model,) = self._scene.fleet.models
            for pod in model.replicas[wanted:]:
                self._engine_of(pod).send(self._now(), Traffic())
            self._route(model.replicas[:wanted])
        self._wanted = wanted

    async def _start(self) -> None:
        uid = f"pod-{self._started}"
        self._started += 1
        await asyncio.sleep(self._startup)
        (model,) = self._scene.fleet.models
        if len(model.replicas) >= self._wanted:
            return
        alike = next(iter(self._scene.engines.values()))
        self._scene.engines[uid] = engine = self._scene.engine(int(uid.removeprefix("pod-")))
        engine.restart(self._now())
        engine.change(self._now(), **asdict(alike.world))
        self._route((*model.replicas, Replica(uid, uid, uid, ready=True, routed=True)))

    def _route(self, replicas: tuple[Replica, ...]) -> None:
        """Each request goes to any of these."""
        (model,) = self._scene.fleet.models
        self._scene.fleet.models = (replace(model, replicas=replicas),)
        for pod in replicas:
            self._engine_of(pod).send(self._now(), Traffic(rate=self._rate / len(replicas)))

    def _engine_of(self, pod: Replica) -> VirtualEngine:
        return self._scene.engines[pod.uid]

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


@contextlib.asynccontextmanager
async def autoscaling(
    scene: Scene, rule: Rule, *, rate: float, startup: float = 90.0
) -> AsyncIterator[Autoscaling]:
    """Requests come and replicas follow until the body is left."""
    scaled = Autoscaling(scene, rule, rate, startup)
    task = asyncio.create_task(scaled.run())
    try:
        yield scaled
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
