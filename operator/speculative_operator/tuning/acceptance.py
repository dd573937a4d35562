"""What is known of acceptance: rows by K, shared by all batch sizes and corrected for each.

E(K) comes from K's own row and from the surest other one: that of a longer proposal cut off, or
that of a shorter one carried on. Rows fade, so that an old trial does not outweigh what the K in
force shows now. Windows differ by more than their sampling: the prompts of the minute move all
positions together. A window that no such jitter explains is a change of traffic: older rows are
put aside, and come back when a later change leads back to them. One such state is kept: of two, the
one that is farther from what is now, since the nearer one is soon learned again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.rows import Row, window_rows
from speculative_operator.tuning.unlike import UNLIKE, chance, mean_offset, offsets, shifted
from speculative_operator.tuning.window import Window

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

TELLING = 4
"""Rows of most drafts that tell of other K than their own."""

Lengths = Mapping[int, Estimate]
"""log E(K) by K, of those of which anything is known."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Rows by K, those that were known before the last change of traffic, and windows since;
    `offsets` are those of the rows, by batch bucket."""

    rows: Mapping[int, Row] = field(default_factory=dict)
    former: Mapping[int, Row] = field(default_factory=dict)
    age: int = SETTLED
    offsets: Mapping[int, float] = field(default_factory=dict)

    def after(self, window: Window, prior: Prior) -> Acceptance:
        """What is known after one more window."""
        new = {k: row.at_most(MOST) for k, row in window_rows(window).items()}
        if not new:
            return self
        here = _contrast(new, self.rows, self.offsets)
        if here is None or here.agrees:
            rows = _joined(self.rows, new)
            return Acceptance(rows, self.former, self.age + 1, offsets(rows, prior))
        there = _contrast(new, self.former, offsets(self.former, prior))
        again = there is not None and there.agrees
        rows = _joined(self.former, new) if again else new
        former = self.former
        if self.age >= SETTLED and (again or there is None or here.far >= there.far):
            former = self.rows
        return Acceptance(rows, former, 0, offsets(rows, prior))

    def lengths(self, arms: Iterable[int], prior: Prior) -> Lengths:
        """Of all traffic together. E(0) is exactly 1."""
        return {k: known.estimate for k, known in self._known(arms, prior).items()}

    def lengths_at(
        self, buckets: Iterable[int], arms: Iterable[int], prior: Prior
    ) -> dict[int, Lengths]:
        """By batch bucket."""
        known = self._known(arms, prior)
        usual = {k: each.corrected(k, 0.0) for k, each in known.items()}
        return {
            name: {k: each.corrected(k, self.offsets[name]) for k, each in known.items()}
            if name in self.offsets
            else usual
            for name in buckets
        }

    def _known(self, arms: Iterable[int], prior: Prior) -> dict[int, _Known]:
        """Each from its own row and from the surest other one: rows of the same windows err
        alike."""
        arms = tuple(arms)
        most = sorted(self.rows, key=lambda of: self.rows[of].drafts, reverse=True)[:TELLING]
        told = {of: self.rows[of].lengths(arms, prior) for of in most}
        found = {0: _Known(Estimate(0.0, 0.0))} if 0 in arms else {}
        for k in arms if most else ():
            if k:
                used = sorted((told[of][k].variance, of) for of in most if of != k)[:1]
                rows = {of: told[of][k] for _, of in used}
                if k in self.rows:
                    own = told[k] if k in told else self.rows[k].lengths((k,), prior)
                    rows[k] = own[k]
                found[k] = self._mixed(rows)
        return found

    def _mixed(self, said: Mapping[int, Estimate]) -> _Known:
        """What rows say, by their sureness."""
        sureness = mean = offset = 0.0
        for of, estimate in said.items():
            sureness += 1 / estimate.variance
            mean += estimate.mean / estimate.variance
            if self.offsets:
                offset += mean_offset(self.rows[of], self.offsets) / estimate.variance
        return _Known(Estimate(mean / sureness, 1 / sureness), offset / sureness)


@dataclass(frozen=True, slots=True)
class _Known:
    """log E(K), and the mean offset of the drafts that it is known from."""

    estimate: Estimate
    offset: float = 0.0

    def corrected(self, k: int, offset: float) -> Estimate:
        """As it is at another offset."""
        if offset == self.offset or not k:
            return self.estimate
        brought = shifted(math.expm1(self.estimate.mean), k, offset - self.offset)
        return Estimate(math.log1p(brought), self.estimate.variance)


def _joined(known: Mapping[int, Row], new: Mapping[int, Row]) -> dict[int, Row]:
    """Known rows one window later."""
    kept = {k: row.faded_plus(new.get(k)) for k, row in known.items()}
    kept |= {k: row for k, row in new.items() if k not in kept}
    return {k: row for k, row in kept.items() if row.drafts >= 1.0}


class _Contrast(NamedTuple):
    """Between a window and what was known: standard errors, and the logarithm of E's ratio."""

    errors: float
    far: float

    @property
    def agrees(self) -> bool:
        return self.errors <= STEEPEST


def _contrast(
    new: Mapping[int, Row], known: Mapping[int, Row], found: Mapping[int, float]
) -> _Contrast | None:
    """Of the window's largest row and what was known of its batch sizes; None where nothing known
    can be compared with it. `found` are the offsets of what was known."""
    k = max(new, key=lambda arm: new[arm].drafts)
    common = _common(k, known)
    if common is None:
        return None
    of, length = common
    row, old = new[k].cut(length), known[of].cut(length)
    if min(row.drafts, old.drafts) < ENOUGH:
        return None
    expected = shifted(old.brought, length, mean_offset(row, found) - mean_offset(old, found))
    error = row.variance + old.variance + (0.02 * old.brought) ** 2
    seen = {name for each in known.values() for name in each.buckets}
    unseen = sum(part.drafts for name, part in row.buckets.items() if name not in seen)
    if unseen:
        error += (UNLIKE * unseen / row.drafts * chance(expected, length).slope) ** 2
    return _Contrast(
        errors=abs(row.brought - expected) / math.sqrt(error),
        far=abs(math.log1p(row.brought) - math.log1p(expected)),
    )


def _common(k: int, known: Mapping[int, Row]) -> tuple[int, int] | None:
    """The known K to compare K with, and the positions that both have: the same K, else the
    nearest longer one, else the nearest shorter one."""
    longer = min((of for of in known if of >= k), default=None)
    if longer is not None:
        return longer, k
    shorter = max(known, default=None)
    return None if shorter is None else (shorter, shorter)
