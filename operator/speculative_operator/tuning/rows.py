"""What the drafts of one K brought: fading sums by position, and by batch bucket.

p_i  = accepted_i / drafts             chance that the first i draft tokens are all accepted
E(K) = 1 + sum of accepted / requests  tokens that a request gets of a step
                                       (= 1 + p_1 + … + p_K where every request has a draft)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple

from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.buckets import bucket_of
from speculative_operator.tuning.page import Phase, Position
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.window import Window

FADING = 0.95
"""What a row keeps of its weight from window to window."""

JITTER = 0.12
"""Standard deviation of the logit of every p_i from window to window, common to all positions."""

OWN_ERROR = 0.004
"""Relative error of E that no number of windows removes."""


class Drafted(NamedTuple):
    """Fading sums of one batch bucket's drafts, and of their accepted tokens."""

    drafts: float
    accepted: float

    def plus(self, other: Drafted) -> Drafted:
        return Drafted(self.drafts + other.drafts, self.accepted + other.accepted)

    def times(self, scale: float) -> Drafted:
        return Drafted(self.drafts * scale, self.accepted * scale)


class Point(NamedTuple):
    """E(k) - 1, its variance for one request, and how far it moves with the logit of all p_i."""

    brought: float
    spread: float
    moved: float


@dataclass(frozen=True, slots=True)
class Row:
    """Fading sums at one K over `windows` windows; `accepted[i]` counts drafts whose first i+1
    tokens were accepted, `buckets` are the parts of each batch bucket."""

    requests: float
    drafts: float
    accepted: tuple[float, ...]
    windows: float = 1.0
    buckets: Mapping[int, Drafted] = field(default_factory=dict)

    @property
    def positions(self) -> tuple[float, ...]:
        """p_1 … p_K."""
        return tuple(count / self.drafts for count in self.accepted)

    @property
    def brought(self) -> float:
        """Accepted draft tokens a request and step, E - 1."""
        return sum(self.accepted) / self.requests

    @property
    def sampling(self) -> float:
        """Variance of `brought` because drafts are few."""
        return self.end.spread / self.requests

    @property
    def variance(self) -> float:
        """Variance of `brought`, the jitter of the windows included."""
        return self.error(self.end)

    def error(self, point: Point, share: float = 1.0) -> float:
        """Variance of `brought` at a point, of the row or of a share of its drafts."""
        jitter = JITTER**2 / max(self.windows * share, 1.0)
        return point.spread / (self.requests * share) + jitter * point.moved**2

    @property
    def end(self) -> Point:
        """The point of all its positions."""
        return self._course(self.accepted)[-1]

    def _course(self, accepted: Iterable[float]) -> list[Point]:
        """Of k = 1, 2, … from so many accepted at each position.

        A count X of nested events has E[X²] = sum of (2i-1)·p_i. Half an event is added to each,
        so that no acceptance in few drafts is not taken for certainty.
        """
        total = first = second = moved = 0.0
        requests = self.requests
        points = []
        for i, count in enumerate(accepted):
            total += count
            p = min((count + 0.5) / (requests + 1.0), 1.0)
            first += p
            second += (2 * i + 1) * p
            moved += p * (1.0 - p)
            points.append(Point(total / requests, max(second - first * first, 0.0), moved))
        return points

    def cut(self, k: int) -> Row:
        """Its first k positions."""
        return replace(self, accepted=self.accepted[:k])

    def at_most(self, drafts: float) -> Row:
        """The same shares from no more than so many drafts."""
        scale = min(1.0, drafts / self.drafts)
        return replace(self.times(scale), windows=self.windows)

    def times(self, scale: float) -> Row:
        """The same shares from so many times as much."""
        return Row(
            self.requests * scale,
            self.drafts * scale,
            tuple(count * scale for count in self.accepted),
            self.windows * scale,
            {name: part.times(scale) for name, part in self.buckets.items()},
        )

    def faded_plus(self, new: Row | None) -> Row:
        """This row one window later, with what the window brought."""
        faded = self.times(FADING)
        if new is None:
            return faded
        accepted = zip_longest(faded.accepted, new.accepted, fillvalue=0.0)
        buckets = dict(faded.buckets)
        for name, part in new.buckets.items():
            _add(buckets, name, part)
        return Row(
            faded.requests + new.requests,
            faded.drafts + new.drafts,
            tuple(map(sum, accepted)),
            faded.windows + new.windows,
            buckets,
        )

    def lengths(self, arms: Iterable[int], prior: Prior) -> dict[int, Estimate]:
        """log E(k) of each k above 0 as this row tells it: its own, cut off, or carried on."""
        wanted = [k for k in arms if k]
        of = len(self.accepted)
        counts = list(self.accepted)
        last = counts[-1]
        before = counts[-2] if of > 1 else self.drafts
        ratio = min(last / before, 0.99) if before else 0.0
        for _ in range(max(wanted, default=0) - of):
            ratio *= prior.decline
            last *= ratio
            counts.append(last)
        course = self._course(counts)
        found = {}
        for k in wanted:
            brought, variance = course[k - 1].brought, self.error(course[k - 1])
            length = 1.0 + brought
            shift, error = 0.0, OWN_ERROR
            if of > k:
                shift, error = prior.cut, prior.cut_error
            elif of < k:
                error = prior.carried_error * (k - of)
            share = brought / length
            found[k] = Estimate(
                math.log(length) + shift * share, variance / length**2 + error**2 * share
            )
        return found


def window_rows(window: Window) -> dict[int, Row]:
    """The rows that one window gives, for each K that had a draft in it."""
    drafted = _drafted(window)
    return {k: _row(window, k, drafted[k]) for k in sorted(drafted)}


def window_row(window: Window, k: int) -> Row | None:
    """The row of one K, if it had a draft."""
    buckets = _drafted(window).get(k)
    return _row(window, k, buckets) if buckets else None


def _row(window: Window, k: int, buckets: Mapping[int, Drafted]) -> Row:
    """Of the requests in steps with prompt tokens some do not decode yet, so the share of requests
    that have a draft is taken from steps that only decode."""
    total, decoding = window.total(k), window.total(k, Phase.DECODE)
    drafted = decoding.drafts / decoding.requests if decoding.requests else 1.0
    accepted = (window.positions.get(Position(k, i)) for i in range(k))
    return Row(
        requests=total.drafts / drafted if 0 < drafted < 1 else total.drafts,
        drafts=total.drafts,
        accepted=tuple(at.accepted if at else 0.0 for at in accepted),
        buckets=buckets,
    )


def _drafted(window: Window) -> dict[int, dict[int, Drafted]]:
    """By K and batch bucket."""
    found: dict[int, dict[int, Drafted]] = {}
    for key, counts in window.rows.items():
        if key.k and counts.drafts:
            buckets = found.setdefault(key.k, {})
            _add(buckets, bucket_of(key.cell), Drafted(counts.drafts, counts.accepted))
    return found


def _add(buckets: dict[int, Drafted], name: int, part: Drafted) -> None:
    """One more part of a bucket's drafts."""
    buckets[name] = part.plus(buckets[name]) if name in buckets else part
