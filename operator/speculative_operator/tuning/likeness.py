"""How far one replica's numbers are from another's, where both did the same.

Two numbers are compared: accepted tokens a draft at each K, and the time of decode-only steps at
each K and batch cell. Both as logarithms, so that a distance is a share whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from speculative_operator.tuning.acceptance import Acceptance
from speculative_operator.tuning.cost import step_time
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.rows import Row, window_rows
from speculative_operator.tuning.window import Window

LEAST_DRAFTS, LEAST_STEPS = 30, 10
"""What a number needs to be compared at all."""

OTHER_PROMPTS = 0.10
"""Standard deviation by which a replica's prompts of the moment move its acceptance (assumed)."""

OTHER_MACHINE = 0.04
"""Standard deviation by which sound GPUs of one kind, and their contexts, differ in step time
(assumed)."""

FLOOR = 0.05
"""Added to accepted tokens a draft: below it, one share more or less means nothing."""

STEEPEST = 3.0
"""Standard errors from which two numbers are out of line."""

LEAST_ACCEPTANCE, LEAST_TIME = 0.25, 0.18
"""Least logarithm of a ratio that is out of line, however sure: 22% fewer accepted, 20% longer."""


class Same(NamedTuple):
    """What was done: steps at K in a batch cell, or, for acceptance, drafts of K (cell None)."""

    k: int
    cell: int | None


class Measure(NamedTuple):
    """A logarithm, its variance, and how many drafts or steps it is of."""

    value: float
    variance: float
    weight: float


Measures = Mapping[Same, Measure]


class Distance(NamedTuple):
    """`off` is the logarithm of own by other, `limit` where it begins to be out of line. `own` and
    `other` are the logarithms where most was done, at `same`."""

    off: float
    limit: float
    same: Same
    own: float
    other: float

    @property
    def ratio(self) -> float:
        """From 1 on it is out of line."""
        return abs(self.off) / self.limit


def acceptance(window: Window) -> Measures:
    """Accepted tokens a draft, by K."""
    return _measured(window_rows(window))


def known_acceptance(known: Acceptance) -> Measures:
    """The same of what the model's replicas have shown together so far."""
    return _measured(known.rows)


def _measured(rows: Mapping[int, Row]) -> Measures:
    found = {}
    for k, row in rows.items():
        if row.drafts >= LEAST_DRAFTS:
            level = row.brought + FLOOR
            sampling = row.sampling / level**2
            found[Same(k, None)] = Measure(math.log(level), sampling + OTHER_PROMPTS**2, row.drafts)
    return found


def accepted(value: float) -> float:
    """Accepted tokens a draft, from their logarithm."""
    return max(math.exp(value) - FLOOR, 0.0)


def step_times(window: Window) -> Measures:
    """Microseconds of a decode-only step, by K and batch cell."""
    found = {}
    for key, counts in window.rows.items():
        time = step_time(key.k, counts) if counts.steps >= LEAST_STEPS else None
        if time is not None and key.phase is Phase.DECODE:
            found[Same(key.k, key.cell)] = Measure(
                time.mean, time.variance + OTHER_MACHINE**2, counts.steps
            )
    return found


def middle(own: Measures, others: Iterable[Measures]) -> Measures:
    """For each number of `own` the middle one of `others`; of two in the middle the farther.

    So with two replicas each is measured against the other, and with more against what most show.
    """
    others = tuple(others)
    found = {}
    for same, mine in own.items():
        there = sorted(each[same] for each in others if same in each)
        if there:
            pair = there[(len(there) - 1) // 2], there[len(there) // 2]
            found[same] = max(pair, key=lambda each: abs(each.value - mine.value))
    return found


def distance(own: Measures, other: Measures, least: float) -> Distance | None:
    """The mean over everything that both did; None where they did nothing alike."""
    weights = {
        same: min(own[same].weight, other[same].weight) for same in own.keys() & other.keys()
    }
    total = sum(weights.values())
    if not total:
        return None
    off = sum(weights[at] * (own[at].value - other[at].value) for at in weights) / total
    variance = sum(weights[at] * (own[at].variance + other[at].variance) for at in weights) / total
    main = max(weights, key=lambda at: (weights[at], at.k))
    limit = max(least, STEEPEST * math.sqrt(variance))
    return Distance(off, limit, main, own[main].value, other[main].value)
