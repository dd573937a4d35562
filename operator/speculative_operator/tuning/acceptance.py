"""How many draft tokens are accepted, for each K; shared by all batch sizes.

    p_i  = accepted_i / drafts             chance that the first i draft tokens are all accepted
    E(K) = 1 + sum of accepted / requests  tokens that a request gets of a step
                                           (= 1 + p_1 + … + p_K where every request has a draft)

E(K) comes from K's own row and from the surest other one: that of a longer proposal cut off, or
that of a shorter one carried on. Rows fade, so that an old trial does not outweigh what the K in
force shows now. Windows differ by more than their sampling: the prompts of the minute move all
positions together. A window that no such jitter explains is a change of traffic: older rows are
put aside, and come back when a later change leads back to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from speculative_operator.tuning.page import Phase, Position
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.window import Window

FADING = 0.95
"""What a row keeps of its weight from window to window."""

JITTER = 0.12
"""Standard deviation of the logit of every p_i from window to window, common to all positions."""

OWN_ERROR = 0.004
"""Relative error of E that no number of windows removes."""

STEEPEST = 4.0
"""Standard errors, jitter included, from which a window contradicts what is known."""

SETTLED = 4
"""Windows with drafts after a change until what is known counts as a state of its own, worth coming
back to."""

MOST = 5000.0
"""Drafts that one window counts for at most: one that covers an hour, after the operator was away,
must not outweigh the next fifty. Sampling does not matter any more at so many."""

ENOUGH = 15.0
"""Drafts that a row and a window need before they are compared. A trial has about forty in a
window with one request."""


class Estimate(NamedTuple):
    """A normal distribution."""

    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Row:
    """Fading sums at one K over `windows` windows; `accepted[i]` counts drafts whose first i+1
    tokens were accepted."""

    requests: float
    drafts: float
    accepted: tuple[float, ...]
    windows: float = 1.0

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
        return self._sums(self.accepted, 0.0)[-1].variance

    @property
    def variance(self) -> float:
        """Variance of `brought`, the jitter of the windows included."""
        return self._sums(self.accepted, JITTER)[-1].variance

    def _sums(self, accepted: Iterable[float], jitter: float) -> list[Estimate]:
        """E(k) - 1 for k = 1, 2, … from so many accepted at each position.

        A count X of nested events has E[X²] = sum of (2i-1)·p_i. Half an event is added to each,
        so that no acceptance in few drafts is not taken for certainty.
        """
        total = first = second = moved = 0.0
        common = jitter**2 / max(self.windows, 1.0)
        sums = []
        for i, count in enumerate(accepted):
            total += count
            p = min((count + 0.5) / (self.requests + 1.0), 1.0)
            first += p
            second += (2 * i + 1) * p
            moved += p * (1 - p)
            sampling = max(second - first**2, 0.0) / self.requests
            sums.append(Estimate(total / self.requests, sampling + common * moved**2))
        return sums

    def cut(self, k: int) -> Row:
        """Its first k positions."""
        return replace(self, accepted=self.accepted[:k])

    def at_most(self, drafts: float) -> Row:
        """The same shares from no more than so many drafts."""
        scale = min(1.0, drafts / self.drafts)
        accepted = tuple(count * scale for count in self.accepted)
        return Row(self.requests * scale, self.drafts * scale, accepted, self.windows)

    def faded_plus(self, new: Row | None) -> Row:
        """This row one window later, with what the window brought."""
        faded = [count * FADING for count in self.accepted]
        requests, drafts = self.requests * FADING, self.drafts * FADING
        windows = self.windows * FADING
        if new is not None:
            longest = max(len(faded), len(new.accepted))
            faded += [0.0] * (longest - len(faded))
            for index, count in enumerate(new.accepted):
                faded[index] += count
            requests, drafts = requests + new.requests, drafts + new.drafts
            windows += new.windows
        return Row(requests, drafts, tuple(faded), windows)

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
        sums = self._sums(counts, JITTER)
        found = {}
        for k in wanted:
            brought, variance = sums[k - 1]
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


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Rows by K, those that were known before the last change of traffic, and windows since."""

    rows: Mapping[int, Row] = field(default_factory=dict)
    former: Mapping[int, Row] = field(default_factory=dict)
    age: int = SETTLED

    def after(self, window: Window) -> Acceptance:
        """What is known after one more window."""
        new = {k: row.at_most(MOST) for k, row in window_rows(window).items()}
        if not new:
            return self
        if _agrees(new, self.rows) is not False:
            return replace(self, rows=_joined(self.rows, new), age=self.age + 1)
        before = self.rows if self.age >= SETTLED else self.former
        if _agrees(new, self.former):
            return Acceptance(_joined(self.former, new), before, age=0)
        return Acceptance(new, before, age=0)

    def lengths(self, arms: Iterable[int], prior: Prior) -> dict[int, Estimate]:
        """log E(K) of these K, as far as anything is known of them. E(0) is exactly 1.

        Each from its own row and from the surest other one: rows of the same windows err alike.
        """
        arms = tuple(arms)
        told = {of: row.lengths(arms, prior) for of, row in self.rows.items()}
        found = {0: Estimate(0.0, 0.0)} if 0 in arms else {}
        for k in arms:
            if k and told:
                others = [lengths[k] for of, lengths in told.items() if of != k]
                known = sorted(others, key=_variance)[:1]
                if k in told:
                    known.append(told[k][k])
                sureness = sum(1 / estimate.variance for estimate in known)
                mean = sum(estimate.mean / estimate.variance for estimate in known) / sureness
                found[k] = Estimate(mean, 1 / sureness)
        return found


def _variance(estimate: Estimate) -> float:
    return estimate.variance


def _joined(known: Mapping[int, Row], new: Mapping[int, Row]) -> dict[int, Row]:
    """Known rows one window later."""
    kept = {k: row.faded_plus(new.get(k)) for k, row in known.items()}
    kept |= {k: row for k, row in new.items() if k not in kept}
    return {k: row for k, row in kept.items() if row.drafts >= 1.0}


def _agrees(new: Mapping[int, Row], known: Mapping[int, Row]) -> bool | None:
    """Whether the window's largest row lies near what was known, or far from it; None where
    nothing known can be compared with it."""
    k = max(new, key=lambda arm: new[arm].drafts)
    common = _common(k, known)
    if common is None:
        return None
    of, length = common
    row, old = new[k].cut(length), known[of].cut(length)
    if min(row.drafts, old.drafts) < ENOUGH:
        return None
    error = math.sqrt(row.variance + old.variance + (0.02 * old.brought) ** 2)
    return abs(row.brought - old.brought) <= STEEPEST * error


def _common(k: int, known: Mapping[int, Row]) -> tuple[int, int] | None:
    """The known K to compare K with, and the positions that both have: the same K, else the
    nearest longer one, else the nearest shorter one."""
    longer = min((of for of in known if of >= k), default=None)
    if longer is not None:
        return longer, k
    shorter = max(known, default=None)
    return None if shorter is None else (shorter, shorter)


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
