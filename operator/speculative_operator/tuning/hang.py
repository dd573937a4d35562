"""Engines that hang: they have requests and end no step, while /health goes on saying 200.

vLLM gives prompts out in chunks, so a long one is many steps; but the first step of an engine may
compile kernels for minutes. An engine is said to hang once it was read at least twice in a row,
over HANG_SECONDS or longer, with requests and without a step since the reading before.
"""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.tuning.page import Counters, Page

HANG_SECONDS = 60.0
FIRST_STEP_SECONDS = 600.0
"""For an engine that has not ended a step since its start: kernels are compiled on the way."""

WITHOUT_PLUGIN_SECONDS = 300.0
"""vLLM's own metrics show tokens given out, and none come while a prompt is long."""

LEAST_READINGS = 2
LATENESS = 1.0
"""Seconds by which a page may be older than its reading."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What was last read of an engine. `since` is the time of the first of the `readings` in a row
    with requests and without a step in between; Unix time."""

    counters: Counters
    at: float
    since: float
    readings: int = 0
    patience: float = HANG_SECONDS

    @property
    def hangs(self) -> bool:
        """Whether it may be said."""
        return self.readings >= LEAST_READINGS and self.at - self.since >= self.patience


def pulse(before: Pulse | None, page: Page, now: float) -> Pulse:
    """With one more page of the same engine, which was its at `now`. An engine that does not answer
    gives no evidence."""
    if before is None or not _stands_still(before, page, now):
        return Pulse(page.counters, now, now, patience=_patience(page))
    return Pulse(page.counters, now, before.since, before.readings + 1, before.patience)


def _stands_still(before: Pulse, page: Page, now: float) -> bool:
    """Whether it has requests and ended no step since the reading before."""
    busy = page.running > 0 or page.waiting > 0
    idle = not page.plugin or page.idle_seconds >= now - before.at - LATENESS
    return busy and idle and page.counters == before.counters


def _patience(page: Page) -> float:
    if not page.plugin or not page.measured:
        return WITHOUT_PLUGIN_SECONDS
    stepped = any(row.requests for row in page.counters.rows.values())
    return HANG_SECONDS if stepped else FIRST_STEP_SECONDS


def hang_in_words(name: str) -> str:
    """What is told of a pod, and what to do."""
    return (
        f"Pod {name} has requests and has ended no step for a minute or more, though /health says "
        "200: its GPU, a collective between GPUs or a kernel hangs. Delete the pod, or let the "
        "operator do it by spec.tuning.replaceFaultyPods; if it comes back, look at the node's GPU "
        "and at the attention backends."
    )
