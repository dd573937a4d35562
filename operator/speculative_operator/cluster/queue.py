"""The work queue: keys of resources that somebody should look at, never what happened to them.

The contract (its tests say it a sentence each): a key waits once however often it is added; no two
workers hold one key; a key added while it is worked on is worked on once more; events shortly after
a pass are looked at together; every pass decides anew when the next one is due; a fault backs the
key off exponentially, and only a pass that did not fail resets that; a wait is not a fault.

`Backlog` is the bookkeeping, pure, with the time passed in. `WorkQueue` runs it on an event loop.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Clock = Callable[[], float]
"""Seconds on a clock that only goes forward."""


@dataclass(frozen=True)
class Done:
    """Nothing to do before something happens, or before `again_in` seconds have passed."""

    again_in: float | None = None


@dataclass(frozen=True)
class BackOff:
    """The pass failed; the next one comes after a pause that doubles each time."""


Outcome = Done | BackOff

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 120.0

REST: Final = 0.2
"""Seconds from the end of a pass before an event leads to another one of the same key. What a pass
starts (a Deployment, its pods) comes back in many events; a key at rest is looked at at once."""


@dataclass
class Backlog(Generic[Key]):
    """Which keys wait, since when, and which are being worked on."""

    _ready: dict[Key, None] = field(default_factory=dict)
    _working: dict[Key, bool] = field(default_factory=dict)  # key -> added again meanwhile
    _due: dict[Key, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    _faults: dict[Key, int] = field(default_factory=dict)
    _resting: dict[Key, float] = field(default_factory=dict)  # until when, the earliest first
    _count: int = 0

    def add(self, key: Key) -> None:
        """The key should be looked at now, or when it has rested from its last pass."""
        if key in self._resting:
            self.add_later(key, self._resting[key])
        else:
            self._make_ready(key)

    def add_later(self, key: Key, due: float) -> None:
        """The key should be looked at at `due`, or earlier if that was asked for before."""
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, key))

    def take(self, now: float) -> Key | None:
        """The key that has waited longest, now being worked on; None while nothing is due."""
        self._ripen(now)
        key = next(iter(self._ready), None)
        if key is not None:
            del self._ready[key]
            self._due.pop(key, None)
            self._resting.pop(key, None)
            self._working[key] = False
        return key

    def finish(self, key: Key, outcome: Outcome, now: float) -> None:
        """The work on a taken key has ended."""
        added_meanwhile = self._working.pop(key)
        self._resting[key] = now + REST
        match outcome:
            case Done(again_in=seconds):
                self._faults.pop(key, None)
                if seconds is not None:
                    self.add_later(key, now + seconds)
            case BackOff():
                faults = self._faults.get(key, 0)
                self._faults[key] = faults + 1
                pause = min(FIRST_PAUSE * 2 ** min(faults, 16), LONGEST_PAUSE)
                self.add_later(key, now + pause)
        if added_meanwhile:
            self.add(key)

    def next_due(self) -> float | None:
        """When the next delayed key ripens; None when none is delayed."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def waiting(self) -> int:
        """How many keys could be taken at once."""
        return len(self._ready)

    def working(self) -> int:
        """How many keys are being worked on."""
        return len(self._working)

    def failing(self) -> int:
        """How many keys failed when they were last worked on."""
        return len(self._faults)

    def _ripen(self, now: float) -> None:
        while self._resting and (first := next(iter(self._resting.items())))[1] <= now:
            del self._resting[first[0]]
        while (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            self._make_ready(key)

    def _make_ready(self, key: Key) -> None:
        if key in self._working:
            self._working[key] = True
        else:
            self._ready[key] = None


class WorkQueue(Generic[Key]):
    """Works on added keys with bounded concurrency."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._backlog: Backlog[Key] = Backlog()
        self._changed = asyncio.Event()

    def add(self, key: Key) -> None:
        """The key should be looked at now; cheap, from any callback of the event loop."""
        self._backlog.add(key)
        self._changed.set()

    def waiting(self) -> int:
        """How many keys could be worked on at once, had all a worker."""
        return self._backlog.waiting()

    def working(self) -> int:
        """How many keys a worker is at."""
        return self._backlog.working()

    def failing(self) -> int:
        """How many keys failed when they were last worked on."""
        return self._backlog.failing()

    async def run(self, work: Callable[[Key], Awaitable[Outcome]], *, workers: int) -> None:
        """Works until cancelled; `work` must turn its own errors into an outcome."""
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._changed.clear()
                while (
                    len(running) < workers
                    and (key := self._backlog.take(self._clock())) is not None
                ):
                    task = asyncio.create_task(self._work_on(key, work))
                    running.add(task)
                    task.add_done_callback(running.discard)
                await self._wait(full=len(running) >= workers)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _work_on(self, key: Key, work: Callable[[Key], Awaitable[Outcome]]) -> None:
        outcome: Outcome = BackOff()
        try:
            outcome = await work(key)
        finally:
            self._backlog.finish(key, outcome, self._clock())
            # The dispatcher looks again after this task has left the set of running ones.
            asyncio.get_running_loop().call_soon(self._changed.set)

    async def _wait(self, *, full: bool) -> None:
        due = None if full else self._backlog.next_due()
        timeout = None if due is None else max(0.0, due - self._clock())
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass  # a delayed key is due now
