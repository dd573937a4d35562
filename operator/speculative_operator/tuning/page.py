"""One engine's page: its counters since it started, as the live speculation plugin reports them.

`engine.state_page` makes a `Page` of the plugin's `/state`, `engine.vllm_metrics` of vLLM's own
`/metrics` where there is no plugin. A series that is missing is absent here, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import NamedTuple

EDGES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Upper edges of the batch cells; one more cell, None, takes what is above."""


def cell_of(batch: int) -> int | None:
    """The upper edge of the cell that a batch size belongs to."""
    return next((edge for edge in EDGES if batch <= edge), None)


class Phase(StrEnum):
    """Whether all requests of a step decode, or one of them brings prompt tokens too. `ANY`: not
    told, as by vLLM's own metrics; see `Window.as_played`."""

    DECODE = "decode"
    MIXED = "mixed"
    ANY = "any"


class RowKey(NamedTuple):
    """Steps are counted by K asked for, upper edge of the batch cell (None: +Inf), and phase."""

    k: int
    cell: int | None
    phase: Phase


class Counts(NamedTuple):
    """Sums over the steps of one row; whole numbers but for the times.

    `steps`, `clipped`, `seconds`, `log_us`, `log_us_sq` (natural logarithm of the step time in
    microseconds, and its square) and `generated` count the timed steps; a step longer than 4 times
    the row's median counts as that, and as clipped. `drafts`, `draft_tokens`, `accepted` and
    `requests` (requests times steps) count every step, so they are not to be divided by the first
    group. A request of n-gram or suffix without a match has no draft.
    """

    steps: float = 0
    clipped: float = 0
    seconds: float = 0
    log_us: float = 0
    log_us_sq: float = 0
    drafts: float = 0
    draft_tokens: float = 0
    accepted: float = 0
    generated: float = 0
    requests: float = 0

    def plus(self, other: Counts) -> Counts:
        return Counts._make(map(add, self, other))


class Position(NamedTuple):
    """Position `at` (from 0) of drafts made at proposal length `k`."""

    k: int
    at: int


class Proposed(NamedTuple):
    """Draft tokens at one position: how many were proposed, and accepted with all before them."""

    drafted: float = 0
    accepted: float = 0


class Prompts(NamedTuple):
    """Requests with a prompt, and those whose prompt equals one of the last few."""

    seen: float = 0
    repeated: float = 0

    def plus(self, other: Prompts) -> Prompts:
        return Prompts(self.seen + other.seen, self.repeated + other.repeated)


class TrialLeft(NamedTuple):
    """Rounds that the trial over these batch sizes has still to play."""

    low: int
    high: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Counters:
    """All sums of one engine since its start, which `pid` and `started` (Unix seconds) name.

    `prompts` is None where they are not counted.
    """

    pid: int
    started: float
    rows: Mapping[RowKey, Counts]
    positions: Mapping[Position, Proposed]
    prompts: Prompts | None = None

    def same_start(self, other: Counters) -> bool:
        """Whether the engine did not restart between the two."""
        return (self.pid, self.started) == (other.pid, other.started)


@dataclass(frozen=True, slots=True)
class Page:
    """What an engine says of itself at one moment.

    `age` is how many seconds ago that was, where the page was not read from the engine itself.
    `plugin` is the plugin's version, "" where the page comes from vLLM's own metrics; such an
    engine is never `tunable`. `lease` is that of the schedule it has read. `measured` is False
    where the plugin answers but could not be put into this vLLM: its counters count nothing.
    """

    plugin: str
    vllm: str
    method: str
    capacity: int
    tunable: bool
    reason: str
    hash_read: str | None
    hash_in_force: str | None
    error: str
    lease: tuple[str, int] | None
    running: int
    waiting: int
    idle_seconds: float
    trials: tuple[TrialLeft, ...]
    counters: Counters
    measured: bool = True
    age: float = 0.0
