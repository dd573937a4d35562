"""The books: what every step cost and what its drafts brought, by (K, batch cell, phase).

K is the proposal length that was asked for when the step's drafts were made; the batch is the
number of scheduled requests, counted in fixed cells. Two groups of columns count different steps:

- timing (`steps`, `clipped`, `seconds`, `log_us`, `log_us_sq`, `generated`): only timed steps. A
  step next to a change of K pays for two lengths, so it is left out. All of the group count the
  same steps: generated / seconds is goodput, generated / steps the tokens of a mean step.
- acceptance (`drafts`, `draft_tokens`, `accepted`, `requests`, and all of `positions`): every step.
  Whether a draft is accepted does not depend on how long the step took. `requests` adds up the
  requests of the steps: with n-gram or suffix not each of them has a draft.

One step of 100 times the usual must not spoil a sum: a step counts for at most CLIP times the
running median of its row. The first steps of a row are held back until there is a median.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from operator import add
from typing import NamedTuple

EDGES = (
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024
)  # fmt: skip
"""Upper edges of the batch cells; a last cell takes what is above."""

DECODE, MIXED = "decode", "mixed"
"""Phases: every scheduled request decodes, or at least one has prompt tokens in the step."""

CLIP = 4.0
MEDIAN_OF = 31
HELD = 5

COLUMNS = (
    "k", "cell", "phase", "steps", "clipped", "seconds", "log_us", "log_us_sq",
    "drafts", "draft_tokens", "accepted", "generated", "requests",
)  # fmt: skip

_LARGEST = EDGES[-1]
_CELL_OF = tuple(bisect_left(EDGES, batch) for batch in range(_LARGEST + 1))


class Outcome(NamedTuple):
    """What the drafts of one step brought.

    `drafts`: requests that had a draft. `drafted_at[i]`, `accepted_at[i]`: drafts whose position
    i (from 0) was proposed, and was accepted.
    """

    drafts: int = 0
    draft_tokens: int = 0
    accepted: int = 0
    drafted_at: Sequence[int] = ()
    accepted_at: Sequence[int] = ()


NO_DRAFTS = Outcome()


class Step(NamedTuple):
    """A step that was given out: `asked` is the K of its drafts, `batch` its requests, `mixed`
    says that prompt tokens are in it, `timed` is False where its time belongs to no single K,
    `began` is when its scheduling began (monotonic seconds)."""

    asked: int
    batch: int
    mixed: bool
    timed: bool
    began: float


@dataclass(frozen=True)
class Books:
    """A consistent copy of all sums. `rows` follow COLUMNS, `cell` is the upper edge or None."""

    rows: list[list[int | float | str | None]]
    positions: list[list[int]]


class Ledger:
    """Sums since the start of the engine. One thread books, any thread copies."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int, bool], _Row] = {}
        self._positions: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
        self._lock = threading.Lock()

    def book(self, step: Step, seconds: float, generated: int, outcome: Outcome) -> None:
        """One finished step that took `seconds` and gave out `generated` tokens."""
        asked, batch, mixed, timed, _ = step
        key = (asked, _CELL_OF[batch] if batch <= _LARGEST else len(EDGES), mixed)
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = _Row()
            row.requests += batch
            if timed and 0.0 < seconds < math.inf:
                row.time(seconds, generated)
            if outcome.drafts:
                row.drafts += outcome.drafts
                row.draft_tokens += outcome.draft_tokens
                row.accepted += outcome.accepted
                self._count_positions(asked, outcome)

    def _count_positions(self, asked: int, outcome: Outcome) -> None:
        drafted, accepted = self._positions.get(asked, ((), ()))
        self._positions[asked] = (
            _added(drafted, outcome.drafted_at),
            _added(accepted, outcome.accepted_at),
        )

    def copy(self) -> Books:
        """All rows, smallest K and batch first: a row exists from its first step on."""
        with self._lock:
            rows = [
                [asked, EDGES[cell] if cell < len(EDGES) else None, MIXED if mixed else DECODE,
                 row.steps, row.clipped, row.seconds, row.log_us, row.log_us_sq,
                 row.drafts, row.draft_tokens, row.accepted, row.generated, row.requests]
                for (asked, cell, mixed), row in sorted(self._rows.items())
            ]  # fmt: skip
            positions = [
                [asked, position, count, accepted[position] if position < len(accepted) else 0]
                for asked, (drafted, accepted) in sorted(self._positions.items())
                for position, count in enumerate(drafted)
                if count
            ]
        return Books(rows, positions)


def _added(sums: Sequence[int], step: Sequence[int]) -> Sequence[int]:
    """Element by element, as long as the longer one."""
    if len(sums) != len(step):
        return [one + other for one, other in zip_longest(sums, step, fillvalue=0)]
    return list(map(add, sums, step))


class _Row:
    """The sums of one (K, cell, phase)."""

    __slots__ = (
        "_by_age", "_held", "_sorted", "accepted", "clipped", "draft_tokens", "drafts",
        "generated", "log_us", "log_us_sq", "requests", "seconds", "steps",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps = self.clipped = self.generated = 0
        self.seconds = self.log_us = self.log_us_sq = 0.0
        self.drafts = self.draft_tokens = self.accepted = self.requests = 0
        self._held: list[tuple[float, int]] | None = []
        self._sorted: list[float] = []
        self._by_age: deque[float] = deque()

    def time(self, seconds: float, generated: int) -> None:
        if self._held is None:
            self._add(seconds, generated)
            self._remember(seconds)
            return
        self._held.append((seconds, generated))
        self._remember(seconds)
        if len(self._held) == HELD:
            held, self._held = self._held, None
            for step in held:
                self._add(*step)

    def _add(self, seconds: float, generated: int) -> None:
        limit = CLIP * self._sorted[len(self._sorted) // 2]
        if seconds > limit:
            seconds = limit
            self.clipped += 1
        log_us = math.log(max(seconds * 1e6, 1.0))
        self.steps += 1
        self.generated += generated
        self.seconds += seconds
        self.log_us += log_us
        self.log_us_sq += log_us * log_us

    def _remember(self, seconds: float) -> None:
        insort(self._sorted, seconds)
        self._by_age.append(seconds)
        if len(self._by_age) > MEDIAN_OF:
            del self._sorted[bisect_left(self._sorted, self._by_age.popleft())]
