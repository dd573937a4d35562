"""How many draft tokens are accepted, for each K; shared by all batch sizes.

    p_i  = accepted_i / drafts             chance that the first i draft tokens are all accepted
    E(K) = 1 + sum of accepted / requests  tokens that a request gets of a step
                                           (= 1 + p_1 + … + p_K where every request has a draft)

E(K) comes from K's own row and from the surest other one: that of a larger K cut off (reads up to
5% low for block drafters) or a smaller K's carried on geometrically. Rows fade, so that an old
trial does not outweigh what the K in force shows now. A window that contradicts its row is
held out; the second in the same direction is a change of traffic, and all older rows go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from speculative_operator.tuning.page import Phase, Position
from speculative_operator.tuning.window import Window

FADING = 0.85
"""What a row keeps of its weight from window to window."""

OWN_ERROR, CUT_ERROR, CARRIED_ERROR = 0.005, 0.03, 0.06
"""Relative errors of E besides sampling: of an own row, of a cut row, and per position carried on
(measured: cut rows 1 to 5%, rows carried on from K=3 3 to 6%)."""

STEEPEST, TOLERANCE = 4.0, 0.08
"""A window contradicts its row beyond 4 standard errors, traffic jitter of 8% included."""

MOST = 5000.0
"""Drafts that one window counts for at most: one that covers an hour, after the operator was away,
must not outweigh the next fifty. Sampling does not matter any more at so many."""

ENOUGH = 50.0
"""Drafts that a row and a window need before they can contradict each other."""


class Estimate(NamedTuple):
    """A normal distribution."""

    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Row:
    """Fading sums at one K; `accepted[i]` counts drafts whose first i+1 tokens were accepted."""

    requests: float
    drafts: float
    accepted: tuple[float, ...]

    @property
    def positions(self) -> tuple[float, ...]:
        """p_1 … p_K."""
        return tuple(count / self.drafts for count in self.accepted)

    @property
    def brought(self) -> float:
        """Accepted draft tokens a request and step, E - 1."""
        return sum(self.accepted) / self.requests

    def spread(self, length: int) -> float:
        """Variance of the accepted tokens of one request, of at most `length` draft tokens.

        A count X of nested events has E[X²] = sum of (2i-1)·p_i. Half an event is added to each,
        so that no acceptance in few drafts is not taken for certainty.
        """
        chances = [(count + 0.5) / (self.requests + 1.0) for count in self.accepted[:length]]
        second = sum((2 * i + 1) * p for i, p in enumerate(chances))
        return max(second - sum(chances) ** 2, 0.0)

    def at_most(self, drafts: float) -> Row:
        """The same shares from no more than so many drafts."""
        scale = min(1.0, drafts / self.drafts)
        accepted = tuple(count * scale for count in self.accepted)
        return Row(self.requests * scale, self.drafts * scale, accepted)

    def faded_plus(self, new: Row | None) -> Row:
        """This row one window later, with what the window brought."""
        faded = [count * FADING for count in self.accepted]
        requests, drafts = self.requests * FADING, self.drafts * FADING
        if new is not None:
            longest = max(len(faded), len(new.accepted))
            faded += [0.0] * (longest - len(faded))
            for index, count in enumerate(new.accepted):
                faded[index] += count
            requests, drafts = requests + new.requests, drafts + new.drafts
        return Row(requests, drafts, tuple(faded))


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Rows by K. `surprise` is the direction (-1, 1) of a window that was held out, or 0."""

    rows: Mapping[int, Row] = field(default_factory=dict)
    surprise: int = 0

    def after(self, window: Window) -> Acceptance:
        """What is known after one more window."""
        new = {k: row.at_most(MOST) for k, row in window_rows(window).items()}
        direction = self._contradicted(new)
        if direction and direction != self.surprise:
            return replace(self, surprise=direction)
        if direction:
            return Acceptance(new)
        kept = {k: row.faded_plus(new.get(k)) for k, row in self.rows.items()}
        kept |= {k: row for k, row in new.items() if k not in kept}
        return Acceptance({k: row for k, row in kept.items() if row.drafts >= 1.0})

    def _contradicted(self, new: Mapping[int, Row]) -> int:
        """Whether the window's largest row lies far below (-1) or above (1) what was known."""
        if not new:
            return 0
        k = max(new, key=lambda arm: new[arm].drafts)
        row, known = new[k], self.rows.get(k)
        if known is None or min(row.drafts, known.drafts) < ENOUGH:
            return 0
        spread = known.spread(k) * (1 / row.requests + 1 / known.requests)
        jitter = TOLERANCE * (known.brought + 0.05)
        distance = (row.brought - known.brought) / math.sqrt(spread + jitter**2)
        return int(math.copysign(1, distance)) if abs(distance) > STEEPEST else 0

    def length(self, k: int) -> Estimate | None:
        """log E(K), or None where no draft of any K was seen. E(0) is exactly 1."""
        if k == 0:
            return Estimate(0.0, 0.0)
        others = [_carried(self.rows[of], of, k) for of in self._telling(k)]
        known = sorted(others, key=lambda estimate: estimate.variance)[:1]
        if k in self.rows:
            known.append(_carried(self.rows[k], k, k))
        if not known:
            return None
        sureness = sum(1 / estimate.variance for estimate in known)
        mean = sum(estimate.mean / estimate.variance for estimate in known) / sureness
        return Estimate(mean, 1 / sureness)

    def lengths(self, arms: Iterable[int]) -> dict[int, Estimate]:
        """log E(K) of all these K, as far as anything is known of them."""
        found = {k: self.length(k) for k in arms}
        return {k: estimate for k, estimate in found.items() if estimate is not None}

    def _telling(self, k: int) -> set[int]:
        """Other K whose rows may tell most of this one: its neighbours, and the most played."""
        others = [of for of in self.rows if of != k]
        above = min((of for of in others if of > k), default=None)
        below = max((of for of in others if of < k), default=None)
        most = max(others, key=lambda of: self.rows[of].drafts, default=None)
        return {of for of in (above, below, most) if of is not None}


def window_rows(window: Window) -> dict[int, Row]:
    """The rows that one window gives, for each K that had a draft in it.

    Of the requests in steps with prompt tokens some do not decode yet, so the share of requests
    that have a draft is taken from steps that only decode.
    """
    rows = {}
    for k in sorted({key.k for key in window.rows if key.k}):
        total, decoding = window.total(k), window.total(k, Phase.DECODE)
        if total.drafts:
            drafted = decoding.drafts / decoding.requests if decoding.requests else 1.0
            accepted = (window.positions.get(Position(k, i)) for i in range(k))
            rows[k] = Row(
                requests=total.drafts / drafted if 0 < drafted < 1 else total.drafts,
                drafts=total.drafts,
                accepted=tuple(at.accepted if at else 0.0 for at in accepted),
            )
    return rows


def _carried(row: Row, of: int, k: int) -> Estimate:
    """log E(k) from the row of K = `of`: its own, cut off, or carried on."""
    counts = list(row.accepted[:k])
    if of < k:
        last = counts[-1]
        before = counts[-2] if len(counts) > 1 else row.drafts
        ratio = min(last / before, 0.98) if before else 0.0
        counts += [last * ratio**further for further in range(1, k - of + 1)]
    length = 1.0 + sum(counts) / row.requests
    sampling = Row(row.requests, row.drafts, tuple(counts)).spread(k) / row.requests / length**2
    error = OWN_ERROR if of == k else CUT_ERROR if of > k else CARRIED_ERROR * (k - of)
    return Estimate(math.log(length), sampling + error**2)
