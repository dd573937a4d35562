"""Whether a new revision decodes as fast as the one that serves, both under the traffic of now.

Compared is goodput, tokens a second of one engine, in decode-only steps at the same batch size.
Each is as fast as its best proposal length: the new one will find it, and the running one is not
slow because its tuner still looks for it. Batch sizes may fail to meet, as a slower engine collects
more requests; but a larger batch never has the lower goodput. So the new one is surely slower where
it is slower than the other is at the same or a smaller batch, and keeps up where it does so with
the other at the same or a larger one.

Both are read every few seconds, and each stretch between two readings is one measurement: what
disturbs an engine (its neighbours, the prompts) lasts for many steps. So how far stretches lie
apart tells how sure their mean is, and the number of steps does not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.cost import BLOCK_ERROR
from speculative_operator.tuning.page import EDGES, Counts, Phase
from speculative_operator.tuning.rows import window_rows
from speculative_operator.tuning.window import Window, merged

LEAST_STEPS = 30
"""Decode-only steps of a proposal length from which its goodput is believed."""

LEAST_STRETCHES = 3.0
"""The same in stretches. Of unlike ones count as many equal ones as tell as much (Kish's effective
sample size)."""

PROMPTS_SECONDS = 10.0
"""For so long prompts may all be of one kind, and so move acceptance (assumed)."""

MACHINE = 0.03
"""Standard deviation by which sound GPUs of one kind differ in step time (assumed)."""

SURE = 1.645
"""Standard errors that leave 5 % on one side of a normal distribution."""

ABOVE_EDGES = 2 * EDGES[-1]
"""In place of an upper edge for the cell above the last one."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The logarithm of the new revision's goodput over the running one's, with 95 % confidence.

    length    the new one's proposal length that `at_least` or `at_most` is of
    at_least  -inf while that is not known of any length
    at_most   inf while that is not known of each length
    """

    length: int | None = None
    at_least: float = -math.inf
    at_most: float = math.inf


Part = Mapping[int, Counts]
"""Steps of one length in one stretch, by the upper edge of their batch cell."""

Paces = Mapping[int, Estimate]
"""Log goodput by the upper edge of the batch cell."""


def contest(running: Sequence[Window], new: Sequence[Window], arms: Collection[int]) -> Contest:
    """What both have shown, each in one stretch after the other. `arms` are the lengths that the
    new one may choose from."""
    paces, parts, doubts = _best(running), _parts(new), _doubts(new)
    found = {k: _compared(parts.get(k, ()), doubts.get(k, 0.0), paces) for k in arms}
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


def _best(running: Sequence[Window]) -> Paces:
    """In each cell the pace of the length that is surely fastest: of several means of few steps the
    largest is too large by chance."""
    doubts = _doubts(running)
    found: dict[int, Estimate] = {}
    for k, parts in _parts(running).items():
        for cell in {cell for part in parts for cell in part}:
            pace = _above(parts, {cell: 0.0}, doubts.get(k, 0.0))
            if pace is not None and (cell not in found or _surely(pace) > _surely(found[cell])):
                found[cell] = pace
    return found


def _surely(pace: Estimate) -> float:
    return pace.mean - SURE * math.sqrt(pace.variance)


def _compared(parts: Sequence[Part], doubt: float, paces: Paces) -> tuple[float, float]:
    """Bounds of the logarithm of the ratio: at least, and at most."""
    cells = {cell for part in parts for cell in part}
    larger = {cell: [c for c in paces if c >= cell] for cell in cells}
    smaller = {cell: [c for c in paces if c <= cell] for cell in cells}
    low = _ratio(parts, doubt, {cell: paces[min(met)] for cell, met in larger.items() if met})
    high = _ratio(parts, doubt, {cell: paces[max(met)] for cell, met in smaller.items() if met})
    return (
        -math.inf if low is None else low.mean - SURE * math.sqrt(low.variance),
        math.inf if high is None else high.mean + SURE * math.sqrt(high.variance),
    )


def _ratio(parts: Sequence[Part], doubt: float, against: Paces) -> Estimate | None:
    """Over the cells that there is a pace against. Paces of one engine err alike, so their errors
    do not cancel out."""
    found = _above(parts, {cell: pace.mean for cell, pace in against.items()}, doubt)
    if found is None:
        return None
    steps = {cell: sum(p[cell].steps for p in parts if cell in p) for cell in against}
    error = sum(steps[cell] * pace.variance for cell, pace in against.items())
    return Estimate(found.mean, found.variance + error / sum(steps.values()) + MACHINE**2)


def _above(parts: Sequence[Part], levels: Mapping[int, float], doubt: float) -> Estimate | None:
    """Log goodput less the level of the cell, over the cells that have one; None while it was
    played in too few stretches.

    The variance is that of a mean of b stretches, as wide as Student's distribution makes it:
    b / (b - 2.5) meets its quantile at 95 % within 3 % from four on, and is on the safe side at
    three. `doubt` is the least of it, and what no number of steps removes comes to it.
    """
    kept = [{cell: row for cell, row in part.items() if cell in levels} for part in parts]
    totals: dict[int, Counts] = {}
    for part in kept:
        for cell, row in part.items():
            totals[cell] = totals.get(cell, Counts()).plus(row)
    sizes = [sum(row.steps for row in part.values()) for part in kept]
    steps = sum(sizes)
    if steps < LEAST_STEPS:
        return None
    alike = steps**2 / sum(size**2 for size in sizes)
    if alike < LEAST_STRETCHES:
        return None

    def over(part: Part, level: float) -> float:
        return sum(row.steps * (_goodput(row) - levels[at] - level) for at, row in part.items())

    mean = over(totals, 0.0) / steps
    apart = sum(over(part, mean) ** 2 for part in kept) / steps**2
    return Estimate(mean, max(apart * alike / (alike - 2.5), doubt) + BLOCK_ERROR**2)


def _goodput(counts: Counts) -> float:
    """The logarithm of tokens a second."""
    return math.log(counts.generated / counts.steps) - counts.log_us / counts.steps + math.log(1e6)


def _parts(stretches: Sequence[Window]) -> Mapping[int, Sequence[Part]]:
    """What was timed at each length, stretch by stretch."""
    found: dict[int, list[Part]] = defaultdict(list)
    for stretch in stretches:
        parts: dict[int, dict[int, Counts]] = defaultdict(dict)
        for key, row in stretch.rows.items():
            if key.phase is Phase.DECODE and row.steps and row.generated:
                parts[key.k][ABOVE_EDGES if key.cell is None else key.cell] = row
        for k, part in parts.items():
            found[k].append(part)
    return found


def _doubts(stretches: Sequence[Window]) -> Mapping[int, float]:
    """Variance of log E by length: drafts are few, and the other engine had other prompts."""
    many = max(sum(stretch.seconds for stretch in stretches) / PROMPTS_SECONDS, 1.0)
    rows = window_rows(merged(stretches))
    return {
        k: replace(row, windows=many).variance / (1.0 + row.brought) ** 2 for k, row in rows.items()
    }
