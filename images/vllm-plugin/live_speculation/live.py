"""One engine's live speculation: the schedule in force and the books of its steps.

The owner of the engine loop calls, in this order, for every step:

    lookup = live.table(now)                    before K is picked; None: leave the engine's own K
    step = live.scheduled(batch, length, …)     after it: `length` = K for the drafts of this step
    live.finished(step, now, …)                 when the step's tokens are there

Steps finish in the order in which they were scheduled; the next may be scheduled before the last
has finished (asynchronous scheduling). Another thread calls `offer` and `refuse` and reads the
pages. `now` is in seconds of the monotonic clock that was passed in.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from live_speculation.ledger import NO_DRAFTS, Ledger, Outcome, Step
from live_speculation.prompts import Prompts
from live_speculation.schedule import Schedule
from live_speculation.trials import Interleave

SETTLE = 2
"""Steps left out of the timing from a change of K on: the one that still verifies drafts of the
old length while it makes new ones, and the first that does not (facts found by running)."""


@dataclass(frozen=True)
class Engine:
    """What is known of an engine from its start on.

    `capacity` is the K it was started for, `lengths` the K that can be played live, `max_batch`
    the most requests of one step. With `stages` of pipeline parallelism a request takes part in
    every such-and-so-manyth step only. An engine that is not `tunable` says why in `reason`; one
    that is not `measured` either has no hooks, and its books stay empty.
    """

    vllm: str
    runner: str = ""
    method: str = "none"
    capacity: int = 0
    max_batch: int = 1
    lengths: frozenset[int] = frozenset({0})
    stages: int = 1
    tunable: bool = True
    reason: str = ""
    measured: bool = True


def _no_load() -> tuple[int, int]:
    return 0, 0


class LiveSpeculation:
    """See the module's text. `load` returns the requests (running, waiting)."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        load: Callable[[], tuple[int, int]] = _no_load,
    ) -> None:
        self.engine = engine
        self.ledger = Ledger()
        self.prompts = Prompts()
        self.load = load
        self.pid = os.getpid()
        self.started = wall()
        self.read: Schedule | None = None
        self.error = ""
        self.fault = ""
        self.clock = clock
        self._term: tuple[str, int] | None = None
        self._offered: Interleave | None = None
        self._playing: Interleave | None = None
        self._lengths = deque([engine.capacity] * engine.stages, maxlen=engine.stages)
        self._settling = 0
        self._began = self._done = clock()
        self._busy = False

    # From the reader of the schedule file.

    def offer(self, schedule: Schedule) -> None:
        """A valid file: plays from the next step on. Offered again, it changes nothing.

        One of an earlier term of the same Lease is refused: an operator wrote it that had lost its
        leadership. Of two Leases nobody can say which one is newer.
        """
        if schedule.lease is not None:
            if self._term is not None and _earlier(schedule.lease, self._term):
                self.refuse(
                    f"lease: term {schedule.lease[1]}, but an operator of term {self._term[1]} "
                    f"has written since"
                )
                return
            self._term = schedule.lease
        self.error = ""
        if self.read is not None and self.read.digest == schedule.digest:
            return
        self.read = schedule
        if self.engine.tunable:
            self._offered = Interleave(schedule, self.engine.max_batch)

    def refuse(self, reason: str) -> None:
        """A missing or invalid file: what plays goes on playing."""
        self.error = reason

    # From the engine loop.

    @property
    def asked(self) -> int:
        """K of the drafts that the next step verifies."""
        return self._lengths[0]

    def table(self, now: float) -> list[int] | None:
        """K by batch size for the step to come: always the same list between two schedules."""
        self._began = now
        offered = self._offered
        if offered is not self._playing:
            self._playing = offered
        return offered.lookup if offered is not None else None

    def scheduled(self, batch: int, length: int, *, mixed: bool, timed: bool = True) -> Step:
        """A step of `batch` > 0 requests went out that verifies drafts made at the last `length`
        and makes drafts of this one. `mixed`: prompt tokens are in it."""
        asked = self.asked
        if length != self._lengths[-1]:
            self._settling = SETTLE * self.engine.stages
        self._lengths.append(length)
        if self._settling:
            self._settling -= 1
            timed = False
        if self._playing is not None:
            self._playing.stepped(batch)
        return Step(asked, batch, mixed, timed, self._began)

    def finished(
        self, step: Step | None, now: float, generated: int, outcome: Outcome = NO_DRAFTS,
        *, more: bool,
    ) -> None:  # fmt: skip
        """The tokens of `step` are there (None: of a step without requests). `more`: requests are
        left, so the engine goes on at once and what happens until then belongs to the next step."""
        if step is not None:
            done = self._done
            began = done if self._busy or done > step.began else step.began
            self.ledger.book(step, now - began, generated, outcome)
        self._done = now
        self._busy = more

    def break_off(self, fault: str) -> None:
        """A hook failed: no trial may stay in force that nobody steps on."""
        self.fault = fault
        if self._playing is not None:
            self._playing.stop()

    # For the pages.

    @property
    def digest_in_force(self) -> str | None:
        return self._playing.schedule.digest if self._playing is not None else None

    @property
    def trials(self) -> list[tuple[tuple[int, int], int]]:
        """Batch range and rounds left of each trial of the schedule in force."""
        return self._playing.progress() if self._playing is not None else []

    def idle_seconds(self) -> float:
        """Since the last step finished, or since the start."""
        return max(0.0, self.clock() - self._done)


def _earlier(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether a term is an earlier one of the same Lease."""
    return one[0] == other[0] and one[1] < other[1]
