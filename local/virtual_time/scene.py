"""One model in virtual time: its engines, their traffic, and the product's own tuner.

async with Scene(group, folder).playing() as scene:
    scene.send(16)
    await scene.pass_seconds(300)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from local.simulated_engine.arguments import Arguments, Speculation
from local.simulated_engine.draft import Draft, Noise
from local.simulated_engine.table import Group
from local.virtual_time.clock import EPOCH, VirtualClock, run
from local.virtual_time.engine import Traffic, VirtualEngine
from local.virtual_time.ports import Fleet, Memories, Pages, Record, Schedules
from speculative_operator.api.tuning import TuningMode
from speculative_operator.controller.tuner.ports import Pages as PagesPort
from speculative_operator.controller.tuner.ports import Ports, Replica, TunedModel, TuningView
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.engine.state_page import parse_state
from speculative_operator.plan.schedule import start_table
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.prior import prior_of
from speculative_operator.tuning.schedule import ScheduleFile, length_at

LONGEST_START = 7
"""New revisions start at the longest choice up to this, never at the shortest."""


def policy_for(group: Group, *, max_num_seqs: int = 64) -> Policy:
    """Auto over the group's measured K, with the product's defaults for all else."""
    initial = max(k for k in group.lengths if k <= LONGEST_START)
    return Policy(
        mode=TuningMode.AUTO,
        method=group.method,
        choices=group.lengths,
        initial=initial,
        max_num_seqs=max_num_seqs,
        fixed=((1, max_num_seqs, initial),),
        prior=prior_of(group.method),
    )


class Scene:
    """See the module's text. The same arguments play the same scene."""

    def __init__(
        self,
        group: Group,
        folder: Path,
        *,
        policy: Policy | None = None,
        replicas: int = 1,
        seed: int = 0,
    ) -> None:
        self.policy = policy or policy_for(group)
        self._group, self._folder, self._seed = group, folder, seed
        self.engines = {f"pod-{number}": self.engine(number) for number in range(replicas)}
        self.record = Record()
        self.memories = Memories()
        self.pages: PagesPort = Pages(self.engines)
        self.schedules = Schedules(self.engines)
        self.fleet = Fleet()
        self._tuner: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def playing(self) -> AsyncIterator[Scene]:
        """The tuner runs until the body is left. What it logs as an error is raised here."""
        pods = tuple(Replica(uid, uid, uid, ready=True, routed=True) for uid in self.engines)
        self.fleet.models = (
            TunedModel("model-uid", "default", "model", "revision", self.policy, True, pods),
        )
        with _errors_of("speculative_operator") as errors:
            self.start_operator()
            try:
                yield self
            finally:
                await self.stop_operator()
        if errors:
            raise AssertionError("\n".join(errors))

    def start_operator(self) -> None:
        """A new tuner that knows only what was saved."""
        ports = Ports(
            clock=VirtualClock(),
            fleet=self.fleet,
            pages=self.pages,
            schedules=self.schedules,
            memories=self.memories,
            report=self.record,
        )
        self._tuner = asyncio.create_task(Tuner(ports).run())

    async def stop_operator(self) -> None:
        """The operator is killed; engines go on."""
        if self._tuner is None:
            return
        self._tuner.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._tuner
        self._tuner = None

    async def pass_seconds(self, seconds: float) -> None:
        """Lets virtual time pass."""
        sleeping = asyncio.ensure_future(asyncio.sleep(seconds))
        waited = {sleeping} if self._tuner is None else {sleeping, self._tuner}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not sleeping.done() and self._tuner is not None:
            sleeping.cancel()
            self._tuner.result()

    def engine(self, number: int, *, speculative: bool = True) -> VirtualEngine:
        """A new engine, with a chance of its own by its number."""
        folder, seed = self._folder / f"pod-{number}", self._seed + number
        return _engine(self._group, self.policy, folder, seed, speculative=speculative)

    def send(self, concurrency: int, *, alike: bool = False, **traffic: int) -> None:
        """So many clients on each engine, from now on."""
        wanted = Traffic(concurrency=concurrency, alike=alike, **traffic)
        for engine in self.engines.values():
            engine.send(self._now(), wanted)

    def change(self, **wanted: object) -> None:
        """New conditions on each engine, from now on; see `World`."""
        for engine in self.engines.values():
            engine.change(self._now(), **wanted)

    def change_engine(self, uid: str, **wanted: object) -> None:
        """New conditions on one engine."""
        self.engines[uid].change(self._now(), **wanted)

    def set_policy(self, policy: Policy) -> None:
        """The user edits the tuning section."""
        (model,) = self.fleet.models
        self.fleet.models = (replace(model, policy=policy),)

    def restart_engine(self, uid: str) -> None:
        """One engine's process starts again."""
        self.engines[uid].restart(self._now())

    def length(self, batch: int) -> int:
        """K of the last schedule at a batch size; the start table's before there was one."""
        written = ScheduleFile.read(self.schedules.written[-1]) if self.schedules.written else None
        return length_at(written.table if written else self.policy.start_table, batch)

    def hash_in_force(self, uid: str) -> str | None:
        """What one engine says that it plays."""
        return parse_state(self.engines[uid].page(self._now())).hash_in_force

    @property
    def view(self) -> TuningView:
        """The tuner's last word."""
        return self.record.views[-1][1]

    def goodput(self, length: int, batch: int) -> float:
        """Noise-free tokens a second at this K under the conditions of now."""
        engine = next(iter(self.engines.values()))
        return engine.draft.goodput(length, batch, engine.world)

    def best(self, batch: int) -> int:
        """The live K of the highest noise-free goodput; of equals the smallest."""
        return max(self.policy.arms, key=lambda k: (self.goodput(k, batch), -k))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def play(scene: Scene, script: Callable[[Scene], Awaitable[None]]) -> None:
    """Runs `script` beside the tuner, in virtual time."""

    async def whole() -> None:
        async with scene.playing():
            await script(scene)

    run(whole())


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[list[str]]:
    """Collects what a logger says at level ERROR: the loop goes on after an error of a model."""
    errors: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(handler.format(record))  # type: ignore[method-assign]
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield errors
    finally:
        logger.removeHandler(handler)


def _engine(
    group: Group, policy: Policy, folder: Path, seed: int, *, speculative: bool
) -> VirtualEngine:
    folder.mkdir(parents=True)
    speculation = Speculation(
        method=group.method,
        length=max(policy.choices),
        schedule=start_table(policy.start_table, policy.choices),
    )
    arguments = Arguments(
        model=group.target,
        served_names=(group.target,),
        host="",
        port=0,
        max_batch=policy.max_num_seqs,
        shutdown_timeout=0.0,
        api_key=None,
        data_parallel=1,
        speculation=speculation if speculative else None,
    )
    draft = Draft(group, speculative=speculative, noise=Noise(), seed=seed)
    return VirtualEngine(arguments, draft, folder, epoch=EPOCH, seed=seed)
