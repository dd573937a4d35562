"""How batch buckets differ in acceptance: each one's own accepted tokens against those of all.

What is asked at one batch size may be easier to draft than what is asked at another. Positions are
counted for all batch sizes together, so a bucket's own accepted ÷ drafts is all there is of it. As
if every token were accepted with one chance a after those before it,

    accepted / drafts = a + a² + … + a^K,    offset = log(-log a) - log(-log a of the reference)

which is the logarithm of the factor by which log p_i of every position is larger. Offsets are told
against the mean of all traffic. Each is shrunk by its own uncertainty (James and Stein's estimator,
its positive part): one that noise alone makes is none at all, so buckets that are alike lose
nothing, and a bucket that was not seen has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.rows import Row

CAUTION = 2.0
"""Squared standard errors that an offset has to exceed."""

UNLIKE = 0.25
"""Standard deviation of the offset of a bucket that was not seen (assumed)."""

LEAST_CHANCE, MOST_CHANCE = 1e-3, 1.0 - 1e-3
STEPS, CLOSE = 6, 1e-4
"""Of Newton's method; it starts below the root of a convex function and then comes from above."""


class Chance(NamedTuple):
    """log a, and how fast accepted tokens a draft change with the offset."""

    log: float
    slope: float


def chance(brought: float, k: int) -> Chance:
    """Of so many accepted tokens a draft of K tokens."""
    a = brought / (1.0 + brought)
    slope = 1.0
    for _ in range(STEPS):
        total, slope = _sum(a, k)
        step = (brought - total) / slope
        a = min(max(a + step, LEAST_CHANCE), MOST_CHANCE)
        if abs(step) < CLOSE:
            break
    log = math.log(a)
    return Chance(log, slope * a * log)


def shifted(brought: float, k: int, offset: float) -> float:
    """So many accepted tokens a draft at another offset."""
    if not offset or brought <= 0.0:
        return brought
    return _sum(math.exp(chance(brought, k).log * math.exp(offset)), k)[0]


def _sum(a: float, k: int) -> tuple[float, float]:
    """a + … + a^k, and its derivative."""
    total = slope = 0.0
    for _ in range(k):
        slope = slope * a + total + 1.0
        total = (total + 1.0) * a
    return total, slope


def offsets(rows: Mapping[int, Row], prior: Prior) -> dict[int, float]:
    """By bucket, those that are not 0. `rows` are by K."""
    drafts: dict[int, float] = {}
    for row in rows.values():
        for name, part in row.buckets.items():
            drafts[name] = drafts.get(name, 0.0) + part.drafts
    if len(drafts) < 2:
        return {}
    reference = max(rows, key=lambda k: rows[k].drafts)
    usual = rows[reference].lengths(rows, prior)
    sums = dict.fromkeys(drafts, 0.0)
    sureness = dict.fromkeys(drafts, 0.0)
    for k, row in rows.items():
        length = math.exp(usual[k].mean)
        there, end = chance(length - 1.0, k), row.end
        carried = 0.0 if k == reference else usual[k].variance * length**2
        for name, part in row.buckets.items():
            share = part.drafts / row.drafts
            own = chance((part.accepted + 0.5) / (part.drafts + 1.0), k)
            sure = there.slope**2 / (row.error(end, share) + carried)
            sums[name] += math.log(own.log / there.log) * sure
            sureness[name] += sure
    found = {name: sums[name] / sureness[name] for name in drafts}
    total = sum(drafts.values())
    mean = sum(found[name] * drafts[name] for name in drafts) / total
    shrunk = {}
    for name, offset in found.items():
        off = offset - mean
        error = (1.0 - drafts[name] / total) / sureness[name]
        if off**2 > CAUTION * error:
            shrunk[name] = off * (1.0 - CAUTION * error / off**2)
    return shrunk


def mean_offset(row: Row, found: Mapping[int, float]) -> float:
    """Of the drafts of a row."""
    total = sum(found.get(name, 0.0) * part.drafts for name, part in row.buckets.items())
    return total / row.drafts
