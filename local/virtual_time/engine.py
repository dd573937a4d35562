"""A simulated engine in virtual time.

It has no task of its own. Whoever looks at it or changes something about it first plays it up to
now, so that a minute of steps costs one call, and everything happens in the order of the clock.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

from live_speculation.pages import metrics, state_json
from live_speculation.reading import INTERVAL, ScheduleReader
from local.simulated_engine.arguments import Arguments
from local.simulated_engine.assembly import assemble
from local.simulated_engine.draft import Draft
from local.simulated_engine.engine import Engine, Request
from local.simulated_engine.faults import PageUnreachable, spoil_metrics, spoil_state
from local.simulated_engine.vllm_metrics import VllmMetrics
from local.simulated_engine.world import PageFault, World
from speculative_operator.engine.state_page import parse_state

SCHEDULE_FILE = "schedule.json"


@dataclass(frozen=True)
class Traffic:
    """A closed loop: `concurrency` clients, each sending the next request after its answer. Or an
    open one: `rate` requests a second, at times of a Poisson process, however many wait."""

    concurrency: int = 0
    rate: float = 0.0
    prompt_tokens: int = 128
    max_tokens: int = 256
    """On average: lengths are even between half of it and one and a half."""
    alike: bool = False
    """Whether all prompts are the same."""


class VirtualEngine:
    """One engine with the plugin, its schedule folder and its traffic.

    Its time is in seconds of the loop; `epoch` is the Unix time of second 0.
    """

    def __init__(
        self, arguments: Arguments, draft: Draft, folder: Path, *, epoch: float, seed: int
    ) -> None:
        self.draft = draft
        self.folder = folder
        self._arguments = arguments
        self._epoch = epoch
        self.traffic = Traffic()
        self._random = random.Random(seed)
        self._prompt = 0
        self._now = 0.0
        self._next_look = 0.0
        self._arrives = math.inf
        self._ends: float | None = None
        self._start()

    @property
    def world(self) -> World:
        """The conditions in force."""
        return self._engine.world

    def page(self, now: float) -> str:
        """The text of `/state`; PageUnreachable when a test made it so, or the engine is dead."""
        self.play(now)
        if self.world.crash:
            raise PageUnreachable(f"the engine is dead: {self.world.crash}")
        return spoil_state(state_json(self._live), self.world.page)

    def metrics(self, now: float) -> str:
        """The text of the plugin's `/metrics`; PageUnreachable as `page`."""
        self.play(now)
        if self.world.crash:
            raise PageUnreachable(f"the engine is dead: {self.world.crash}")
        return spoil_metrics(metrics(self._live), self.world.page)

    def vllm_metrics(self, now: float) -> str:
        """The text of vLLM's own `/metrics`, of the steps that were made while the world's `page`
        was `unmeasured`: it costs more than the steps themselves."""
        self.play(now)
        return self._vllm.page()

    def generated(self, now: float) -> float:
        """Tokens since the process started."""
        self.play(now)
        rows = parse_state(state_json(self._live)).counters.rows
        return sum(counts.generated for counts in rows.values())

    def load(self, now: float) -> tuple[int, int]:
        """Requests (running, waiting)."""
        self.play(now)
        return self._engine.load()

    def change(self, now: float, **wanted: object) -> None:
        """New conditions from `now` on, as `World.changed` takes them."""
        self.play(now)
        self._engine.change(wanted)

    def send(self, now: float, traffic: Traffic) -> None:
        """Other traffic from `now` on; requests that run are finished."""
        self.play(now)
        self.traffic = traffic
        self._arrives = self._next_arrival(now)
        self._fill()

    def restart(self, now: float) -> None:
        """The process starts again: counters at zero, requests lost, the conditions those of the
        table, the folder as it is."""
        self.play(now)
        self._start()
        self._fill()

    def write_schedule(self, now: float, text: str) -> None:
        """The kubelet has put a new file into the folder."""
        self.play(now)
        (self.folder / SCHEDULE_FILE).write_text(text)

    def play(self, until: float) -> None:
        """All steps that end by `until`."""
        while self._now < until:
            if self._ends is None and not self._stands_still:
                seconds = self._engine.begin(self._now)
                self._ends = None if seconds is None else self._now + seconds
            idle = self._ends is None or self._stands_still
            ends = self._arrives if self._ends is None or idle else self._ends
            if self._next_look <= min(ends, until):
                self._now = max(self._now, self._next_look)
                self._reader.poll()
                self._next_look += INTERVAL
            elif ends > until:
                self._now = until
            elif idle:
                self._now = max(self._now, ends)
                self._fill()
            else:
                self._now = ends
                self._ends = None
                completed = self._engine.complete(ends)
                if self.world.page is PageFault.UNMEASURED:
                    self._vllm.stepped(completed)
                self._fill()

    @property
    def _stands_still(self) -> bool:
        return self.world.hung or bool(self.world.crash)

    def _start(self) -> None:
        self._engine: Engine = assemble(
            self._arguments,
            self.draft,
            plugin=True,
            clock=lambda: self._now,
            wall=lambda: self._epoch + self._now,
        )
        live = self._engine.live
        assert live is not None
        self._live = live
        speculation = self._arguments.speculation
        length = speculation.length if speculation else 0
        self._vllm = VllmMetrics(self._engine, model=self._arguments.model, length=length)
        self._reader = ScheduleReader(self.folder / SCHEDULE_FILE, live)
        self._next_look = self._now
        self._ends = None

    def _fill(self) -> None:
        """Every client without a request sends one, and what has arrived is queued."""
        running, waiting = self._engine.load()
        for _ in range(self.traffic.concurrency - running - waiting):
            self._submit(self._now)
        while self._arrives <= self._now:
            self._submit(self._arrives)
            self._arrives = self._next_arrival(self._arrives)

    def _next_arrival(self, after: float) -> float:
        rate = self.traffic.rate
        return after + self._random.expovariate(rate) if rate else math.inf

    def _submit(self, arrived: float) -> None:
        length = max(1, round(self.traffic.max_tokens * self._random.uniform(0.5, 1.5)))
        self._prompt += not self.traffic.alike
        request = Request(self.traffic.prompt_tokens, length, arrived, prompt=self._prompt)
        self._engine.submit(request)
