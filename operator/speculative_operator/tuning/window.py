"""What a fleet did between two readings of its pages.

Every p and E comes from differences of counters. What cannot be a difference (a restart, a counter
that went back, an engine that stands still with requests) is no evidence, with a reason; it is
never zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.page import (
    Counters,
    Counts,
    Page,
    Phase,
    Position,
    Prompts,
    Proposed,
    RowKey,
    cell_of,
)

LEAST_DRAFTS = 50
"""A window with less is no evidence."""

NOTHING = Counts()

STALLED_SECONDS = 30.0
"""An engine that has requests and has made no step for so long hangs; a page that shows no step
for so long is an old one."""


@dataclass(frozen=True, slots=True)
class NoEvidence:
    """Nothing can be concluded, and why: a condition's reason and message."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class Window:
    """Differences of the counters over `seconds` of wall time, summed over `replicas` engines.

    `trials_over` is True once every engine has played all the trials that it was asked for;
    `prompts` is None where no engine counts them.
    """

    seconds: float
    replicas: int = 1
    rows: Mapping[RowKey, Counts] = field(default_factory=dict)
    positions: Mapping[Position, Proposed] = field(default_factory=dict)
    trials_over: bool = False
    prompts: Prompts | None = None

    @property
    def drafts(self) -> float:
        return sum(counts.drafts for counts in self.rows.values())

    @property
    def weight(self) -> float:
        """How much evidence this is: at each K its drafts, and where none are made, request-steps
        (without the plugin, which counts those, tokens)."""
        totals = [self.total(k) for k in {key.k for key in self.rows}]
        return sum(each.drafts or max(each.requests, each.generated) for each in totals)

    def as_played(self, k: int) -> Window:
        """Of an engine without the plugin, whose metrics do not say at which K a step was made: its
        sums as those of the K that it plays, at the mean batch size. Others stay as they are.

        Positions from K on are empty, since no draft reached them; if one did, K was longer.
        """
        total = Counts()
        for key, counts in self.rows.items():
            if key.phase is not Phase.ANY:
                return self
            total = total.plus(counts)
        reached = max((at.at + 1 for at, its in self.positions.items() if its.accepted), default=0)
        k = max(k, reached)
        return replace(
            self,
            rows=dict((_decoding(k, total),)) if self.rows else {},
            positions={Position(k, at.at): its for at, its in self.positions.items() if at.at < k},
        )

    def total(self, k: int, phase: Phase | None = None) -> Counts:
        """The sums at one K over all batch sizes, of both phases unless one is named."""
        return self._totals.get((k, phase), NOTHING)

    @cached_property
    def _totals(self) -> Mapping[tuple[int, Phase | None], Counts]:
        found: dict[tuple[int, Phase | None], list[Counts]] = {}
        for key, counts in self.rows.items():
            found.setdefault((key.k, None), []).append(counts)
            found.setdefault((key.k, key.phase), []).append(counts)
        return {of: Counts._make(map(sum, zip(*rows, strict=True))) for of, rows in found.items()}


def _decoding(k: int, told: Counts) -> tuple[RowKey, Counts]:
    """What vLLM's own metrics tell of the steps in which requests decode, as one row.

    `told.seconds` is summed over requests, so over `told.requests` it is the mean step as requests
    see it, with prompts of others in it. How steps spread is not known: each is taken to be the
    mean. First tokens, which come of prompts, are left out. Where there are no times, it is not
    known at which batch size the steps were made.
    """
    if not (told.steps and told.seconds and told.requests):
        return RowKey(k, None, Phase.ANY), told._replace(steps=0, seconds=0)
    seconds = told.seconds / told.requests
    mean = math.log(1e6 * seconds)
    return RowKey(k, cell_of(round(told.requests / told.steps)), Phase.DECODE), told._replace(
        seconds=told.steps * seconds,
        log_us=told.steps * mean,
        log_us_sq=told.steps * mean**2,
        generated=told.requests + told.accepted,
    )


def difference(before: Counters, after: Page, seconds: float) -> Window | NoEvidence:
    """What one engine did since its counters were `before`, some `seconds` ago, or why that cannot
    be said."""
    counters = after.counters
    if not before.same_start(counters):
        return NoEvidence(Reason.NOT_ENOUGH_DRAFTS, "the engine restarted")
    if after.running and after.idle_seconds > STALLED_SECONDS:
        return NoEvidence(Reason.METRICS_INVALID, "the engine has requests and makes no step")
    rows = _subtract(before.rows, counters.rows, Counts())
    positions = _subtract(before.positions, counters.positions, Proposed())
    if rows is None or positions is None:
        return NoEvidence(Reason.METRICS_INVALID, "the engine's counters went back")
    if after.running and not rows and seconds - after.age > STALLED_SECONDS:
        return NoEvidence(Reason.METRICS_INVALID, "the engine's counters stand still under load")
    return Window(
        seconds=seconds,
        rows={
            key: _heard(key, before.rows.get(key), Counts(*grown)) for key, grown in rows.items()
        },
        positions={key: Proposed(*values) for key, values in positions.items()},
        prompts=_prompts(before.prompts, counters.prompts),
    )


def _heard(key: RowKey, before: Counts | None, grown: Counts) -> Counts:
    """A row's growth. The plugin holds the times of its first steps back until it has a median, so
    the window in which they come would tell of steps that were counted in the one before: that one
    time they are left out. vLLM's own sums, of any phase, may have no steps at all."""
    if key.phase is Phase.ANY or before is None or before.steps or not before.requests:
        return grown
    return grown._replace(steps=0, clipped=0, seconds=0, log_us=0, log_us_sq=0, generated=0)


def _prompts(before: Prompts | None, after: Prompts | None) -> Prompts | None:
    """Prompts between two readings; None where one of them does not count any."""
    if before is None or after is None:
        return None
    return Prompts(max(after.seen - before.seen, 0), max(after.repeated - before.repeated, 0))


Key = TypeVar("Key", bound=tuple[object, ...])


def _subtract(
    before: Mapping[Key, tuple[float, ...]],
    after: Mapping[Key, tuple[float, ...]],
    zero: tuple[float, ...],
) -> dict[Key, list[float]] | None:
    """The sums that grew; None when one shrank or is gone."""
    if not before.keys() <= after.keys():
        return None
    grown = {}
    for key, sums in after.items():
        change = [a - b for a, b in zip(sums, before.get(key, zero), strict=True)]
        if any(value < 0 for value in change):
            return None
        if any(change):
            grown[key] = change
    return grown


def merged(windows: Iterable[Window]) -> Window:
    """One window of a whole fleet; all were read over the same time."""
    seconds, replicas = 0.0, 0
    rows: dict[RowKey, Counts] = {}
    positions: dict[Position, Proposed] = {}
    prompts: Prompts | None = None
    for window in windows:
        seconds = max(seconds, window.seconds)
        replicas += window.replicas
        for key, counts in window.rows.items():
            rows[key] = rows[key].plus(counts) if key in rows else counts
        if window.prompts is not None:
            prompts = window.prompts.plus(prompts or Prompts())
        for at, (drafted, accepted) in window.positions.items():
            so_far = positions.get(at, Proposed())
            positions[at] = Proposed(so_far.drafted + drafted, so_far.accepted + accepted)
    return Window(seconds, replicas, rows, positions, prompts=prompts)
