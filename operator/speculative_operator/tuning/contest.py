"""Whether a new revision decodes as fast as the one that serves, both under the traffic of now.

Compared is goodput, tokens a second of one engine, in decode-only steps at the same batch size. The
new one is as fast as its best proposal length, since that is what tuning will find. Batch sizes may
fail to meet, as a slower engine collects more requests; but a larger batch never has the lower
goodput. So the new one is surely slower where it is slower than the other is at the same or a
smaller batch, and keeps up where it does so with the other at the same or a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from speculative_operator.tuning.acceptance import Estimate, Row, window_rows
from speculative_operator.tuning.cost import step_time
from speculative_operator.tuning.page import EDGES, Phase, RowKey
from speculative_operator.tuning.window import Window

LEAST_STEPS = 30
"""Decode-only steps of a proposal length in a batch cell from which its goodput is believed."""

PROMPTS_SECONDS = 10.0
"""For so long prompts may all be of one kind, and so move acceptance (assumed)."""

MACHINE = 0.03
"""Standard deviation by which sound GPUs of one kind differ in step time (assumed)."""

SURE = 1.645
"""Standard errors that leave 5 % on one side of a normal distribution: a rejection undoes what the
user asked for."""

LIKELY = 1.0
"""The same that leave 16 %: keeping up is what is expected, and tuning goes on to measure."""

ABOVE_EDGES = 2 * EDGES[-1]
"""In place of an upper edge for the cell above the last one."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The logarithm of the new revision's goodput over the running one's.

    length    the new one's proposal length that `at_least` or `at_most` is of
    at_least  most likely; -inf while that is not known of any length
    at_most   surely, with 95 % confidence; inf while that is not known of each length
    """

    length: int | None = None
    at_least: float = -math.inf
    at_most: float = math.inf


class Pace(NamedTuple):
    """Log goodput, its variance, and of how many steps it is."""

    goodput: float
    variance: float
    steps: float


Paces = Mapping[int, Pace]
"""By the upper edge of the batch cell."""


def contest(running: Window, new: Window, arms: Collection[int]) -> Contest:
    """What both have shown. `arms` are the lengths that the new one may choose from."""
    there = _usual(running)
    found = {k: _compared(_paces(new, k), there) for k in arms}
    at_least = {k: low for k, (low, _) in found.items()}
    at_most = {k: high for k, (_, high) in found.items()}
    kept = max(at_least, key=lambda k: at_least[k], default=None)
    if kept is not None and at_least[kept] == -math.inf:
        kept = max(at_most, key=lambda k: at_most[k])
    return Contest(
        length=kept,
        at_least=max(at_least.values(), default=-math.inf),
        at_most=max(at_most.values(), default=math.inf),
    )


def _usual(window: Window) -> Paces:
    """In each cell that of the length most steps were made at."""
    found: dict[int, Pace] = {}
    for k in {key.k for key in window.rows}:
        for cell, pace in _paces(window, k).items():
            if cell not in found or pace.steps > found[cell].steps:
                found[cell] = pace
    return found


def _paces(window: Window, k: int) -> Paces:
    row = window_rows(window).get(k)
    doubt = _doubt(row, window.seconds) if row is not None else 0.0
    found = {}
    for key, counts in window.rows.items():
        time = step_time(k, counts) if _counts(key, k) and counts.steps >= LEAST_STEPS else None
        if time is not None and counts.generated:
            goodput = math.log(counts.generated / counts.steps) - time.mean + math.log(1e6)
            cell = ABOVE_EDGES if key.cell is None else key.cell
            found[cell] = Pace(goodput, time.variance + doubt, counts.steps)
    return found


def _counts(key: RowKey, k: int) -> bool:
    return key.k == k and key.phase is Phase.DECODE


def _doubt(row: Row, seconds: float) -> float:
    """Variance of log E(K): drafts are few, and the other engine had other prompts."""
    stretches = max(seconds / PROMPTS_SECONDS, 1.0)
    return replace(row, windows=stretches).variance / (1.0 + row.brought) ** 2


def _compared(new: Paces, running: Paces) -> tuple[float, float]:
    """Bounds of the logarithm of the ratio: most likely at least, and surely at most."""
    low = _mean(
        (pace, running[min(larger)])
        for cell, pace in new.items()
        if (larger := [other for other in running if other >= cell])
    )
    high = _mean(
        (pace, running[max(smaller)])
        for cell, pace in new.items()
        if (smaller := [other for other in running if other <= cell])
    )
    return (
        -math.inf if low is None else low.mean - LIKELY * math.sqrt(low.variance),
        math.inf if high is None else high.mean + SURE * math.sqrt(high.variance),
    )


def _mean(pairs: Iterator[tuple[Pace, Pace]]) -> Estimate | None:
    """Weighted by steps. Cells of one engine err alike, so their errors do not cancel out."""
    ratio = variance = steps = 0.0
    for new, running in pairs:
        weight = min(new.steps, running.steps)
        ratio += weight * (new.goodput - running.goodput)
        variance += weight * (new.variance + running.variance + MACHINE**2)
        steps += weight
    return Estimate(ratio / steps, variance / steps) if steps else None
