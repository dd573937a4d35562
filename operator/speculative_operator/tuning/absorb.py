"""What the step times of one window teach: a cost in, a cost out.

All unknowns are normal and are moved by Kalman's update. Slow outliers are part of the model: one
time in SLOW_SHARE is too long by about exp(SLOW), so an update counts for as much as it is likely
to be none, and what may have been an outlier leaves doubt. A time far too long is held out; the
second in a row of the same K is a change, and so is one far too short, since nothing makes steps
faster by chance. Then everything that was known becomes less sure, or, if it was so before the
last change, is known again. A smaller surprise of a K that was not seen for long may rather be a
change than chance, too; then that K alone becomes less sure, and its time is confirmed by another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from speculative_operator.tuning.belief import Belief
from speculative_operator.tuning.cost import (
    CHANGED,
    SETTLED,
    SLOW,
    SLOW_SHARE,
    UNKNOWN,
    Cell,
    Cost,
    Known,
    StepTime,
    spread,
)
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.surprise import outlier_chance, rather_changed

OWN_DRIFT, PRICE_DRIFT = 0.002, 0.004
"""How far log c of each K, and of all together, may move from window to window."""

LEAST_DRIFT, MOST_DRIFT = 0.001, 0.2
LEAST_NOISE, MOST_NOISE = 0.1, 30.0
LEARNING = 0.08
"""How fast drift and noise follow the surprises."""

STEEPEST = 3.5
"""Standard errors from which a time contradicts."""

DOUBTED = 0.03
"""Chance of being an outlier from which a time has to be confirmed by another one."""

FREE = 100.0
"""Variance of a level of which nothing is known: as good as infinite for a logarithm."""


def absorbed(
    cost: Cost,
    cells: Mapping[Cell, Sequence[StepTime]],
    prior: Prior,
    windows: int = 1,
    unseen: Mapping[int, int] | None = None,
) -> Cost:
    """What is known after the step times of one window, so many windows after the last; `unseen`
    are those since each K was timed."""
    update = _Update(cost, prior, windows, unseen or {})
    for cell, times in cells.items():
        timed = [
            time._replace(variance=time.variance * cost.noise)
            for time in times
            if time.k == 0 or time.k in cost.lengths
        ]
        if timed:
            update.take(cell, sorted(timed, key=lambda time: time.variance))
    return update.cost()


class _Update:
    """One window on its way into a cost."""

    def __init__(self, cost: Cost, prior: Prior, windows: int, unseen: Mapping[int, int]) -> None:
        self._cost, self._prior, self._unseen = cost, prior, unseen
        self._cells = list(cost.known.cells)
        self._belief = Belief(cost.known.means, cost.known.covariance)
        self._former, self._age = cost.former, cost.age + windows
        self._held, self._alone = set(cost.held), set(cost.alone)
        self._noise, self._drift, self._shock = cost.noise, cost.drift, cost.shock
        self._pass(windows)

    def _pass(self, windows: int) -> None:
        """Time goes by: levels and costs may have moved."""
        levels = len(self._cells)
        for i in range(levels):
            self._belief.widen(i, i, windows * self._drift**2)
        together, each = windows * PRICE_DRIFT**2, windows * OWN_DRIFT**2
        for i in range(levels, len(self._belief.means)):
            for j in range(levels, i + 1):
                self._belief.widen(i, j, together + (each if i == j else 0.0))

    def take(self, cell: Cell, times: Sequence[StepTime]) -> None:
        """The times of one cell, surest first. The first one tells of the window as a whole: if it
        is held out, the window may be out of line, and the others are not taken in."""
        if cell not in self._cells:
            self._add_level(cell, times[0])
            for time in times[1:]:
                self._learn((self._cells.index(cell),), time, first=False)
            return
        common = self._belief.add(self._drift**2)
        window = (self._cells.index(cell), common)
        if self._learn(window, times[0], first=True):
            for time in times[1:]:
                self._learn(window, time, first=False)
        self._belief.drop_last()

    def _add_level(self, cell: Cell, time: StepTime) -> None:
        """A new unknown before the lengths: what the first time leaves of it."""
        at = len(self._cells)
        self._cells.append(cell)
        known = self._belief.means[at + self._cost.lengths.index(time.k)] if time.k else 0.0
        self._belief.insert(at, time.mean - known, FREE)
        _, variance, weights = self._belief.expected(self._touched((at,), time.k))
        self._belief.learn(weights, 0.0, 1.0 / (variance + time.variance))
        self._belief.widen(at, at, SLOW_SHARE * SLOW**2)

    def _touched(self, window: tuple[int, ...], k: int) -> tuple[int, ...]:
        return (*window, len(self._cells) + self._cost.lengths.index(k)) if k else window

    def _learn(self, window: tuple[int, ...], time: StepTime, *, first: bool) -> bool:
        """Takes in one time; False if it was held out."""
        touched = self._touched(window, time.k)
        mean, variance, weights = self._belief.expected(touched)
        total = variance + time.variance
        error = time.mean - mean
        surprise = error / math.sqrt(total)
        unseen = 0 if first else self._unseen.get(time.k, 0)
        if abs(surprise) <= STEEPEST and rather_changed(error, total, unseen):
            self._widen(touched[0], time.k, first=False)
            mean, variance, weights = self._belief.expected(touched)
            total = variance + time.variance
            surprise = error / math.sqrt(total)
        doubt = outlier_chance(error, total)
        if abs(surprise) <= STEEPEST:
            self._held.discard(time.k)
            self._stands_alone(time.k, alone=variance > UNKNOWN**2 or doubt > DOUBTED)
            self._adapt(surprise, time.variance / total, first=first)
        else:
            if surprise > 0 and time.k not in self._held:
                self._held.add(time.k)
                return False
            self._held.discard(time.k)
            self._stands_alone(time.k, alone=surprise > 0)
            self._change(touched, time, first=first)
            mean, variance, weights = self._belief.expected(touched)
            total = variance + time.variance
            error, doubt = time.mean - mean, 0.0
        # Two cases, mixed and made normal again; an outlier teaches nothing.
        sure, step = 1.0 - doubt, error / total
        self._belief.learn(weights, sure * step, sure / total - sure * doubt * step**2)
        return True

    def _stands_alone(self, k: int, *, alone: bool) -> None:
        """Whether the last time of K is one that nothing else confirms."""
        if alone:
            self._alone.add(k)
        else:
            self._alone.discard(k)

    def _adapt(self, surprise: float, own: float, *, first: bool) -> None:
        """Surprises of a model that is right have the variance 1 and do not depend on each other:
        larger ones mean more noise, ones that follow each other in direction a level that walks."""
        excess = min(surprise**2, 9.0) - 1.0
        noise = self._noise * math.exp(LEARNING * own * excess)
        self._noise = min(max(noise, LEAST_NOISE), MOST_NOISE)
        if first:
            drift = self._drift * math.exp(LEARNING * surprise * self._shock)
            self._drift = min(max(drift, LEAST_DRIFT), MOST_DRIFT)
            self._shock = max(min(surprise, 3.0), -3.0)

    def _change(self, touched: tuple[int, ...], time: StepTime, *, first: bool) -> None:
        """Something is not as it was. If it is as it was before that, that is known again."""
        self._shock = 0.0
        before, former = self._known(), self._former
        if self._age >= SETTLED:
            self._former = before
        self._age = 0
        if former is not None and former.cells == before.cells:
            again = Belief(former.means, former.covariance)
            again.add(self._drift**2)
            mean, variance, _ = again.expected(touched)
            if abs(time.mean - mean) < STEEPEST * math.sqrt(variance + time.variance):
                self._belief = again
                return
        self._widen(touched[0], time.k, first=first)

    def _widen(self, level: int, k: int, *, first: bool) -> None:
        """What may have changed: anything, if the window's surest time says so. Else that one was
        as expected, so it is the other K alone; and if that is K=0, speculation's price."""
        widen, levels = self._belief.widen, len(self._cells)
        last = levels + len(self._cost.lengths)
        if first:
            for i in range(levels):
                widen(i, i, CHANGED**2)
            for i, row in enumerate(spread(self._cost.lengths, self._prior), levels):
                for j, variance in enumerate(row, levels):
                    widen(i, j, variance)
        elif k:
            at = self._touched((level,), k)[-1]
            widen(at, at, CHANGED**2)
        else:
            variance = self._prior.price_error**2
            widen(level, level, variance)
            for i in range(levels, last):
                widen(i, level, -variance)
                for j in range(levels, i + 1):
                    widen(i, j, variance)

    def _known(self) -> Known:
        size = len(self._cells) + len(self._cost.lengths)
        rows = self._belief.covariance[:size]
        return Known(tuple(self._cells), tuple(self._belief.means[:size]), tuple(map(tuple, rows)))

    def cost(self) -> Cost:
        """The result."""
        return replace(
            self._cost,
            known=self._known(),
            former=self._former,
            held=frozenset(self._held),
            alone=frozenset(self._alone),
            noise=self._noise,
            drift=self._drift,
            shock=self._shock,
            age=self._age,
        )
