"""How much of an oracle's tokens a tuned engine made, from the interleaved measurements of one run.

Every K was timed in short blocks under the same traffic, and acceptance was counted, so what each K
would have brought in each phase is known from the very run that is judged:

    goodput(K, phase) = batch · E(K, phase) / T(K, batch)

E from the phase's own drafts by position, of all K that reached it; T from all steps of that batch
size, with the error that the product gives it: steps in a row are alike, and a block as a whole is
off by something. What was played is judged by the same figures, so that their noise cancels.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from speculative_operator.tuning.cost import step_time
from speculative_operator.tuning.page import Counts

FEWEST_STEPS = 20
"""Of a K at a batch size: with fewer it is not judged, neither as played nor as the oracle's."""

DRAWS = 300
"""Of the estimates within their errors, for the error of the share."""

Page = Mapping[str, Any]
Times = Mapping[tuple[int, int], tuple[float, float]]
"""(batch, K) → mean of the log step time, and its standard error."""


@dataclass(frozen=True)
class Stretch:
    """The plugin's pages at both ends of a phase with so many clients."""

    name: str
    batch: int
    before: Page
    after: Page


@dataclass(frozen=True)
class Counted:
    """One phase: decode steps by K, and by position the share of drafts accepted, of how many."""

    batch: int
    steps: Mapping[int, float]
    accepted: Sequence[tuple[float, float]]

    def tokens(self, k: int, chance: random.Random | None = None) -> float:
        """E(K); with a chance, one that the counts allow."""
        return 1.0 + sum(
            _drawn(p, math.sqrt(p * (1 - p) / n), chance) for p, n in self.accepted[:k]
        )


@dataclass(frozen=True)
class Shares:
    """Tokens against those of the oracle, which knows the best K of each phase."""

    tuned: float
    fixed: Mapping[int, float]


@dataclass(frozen=True)
class Judged:
    """`error` is the standard error of the tuned share; `lines` are for people."""

    shares: Shares
    error: float
    lines: Sequence[str]


def judge(stretches: Sequence[Stretch]) -> Judged:
    """Judges a run by its own measurements."""
    phases = [_counted(stretch) for stretch in stretches]
    times = _times(stretches)
    shares = _shares(phases, times, None)
    chance = random.Random(0)
    drawn = [_shares(phases, times, chance).tuned for _ in range(DRAWS)]
    error = statistics.stdev(drawn)
    lines = []
    for stretch, phase in zip(stretches, phases, strict=True):
        rates = _rates(phase, times, None)
        lines.append(
            f"{stretch.name}: {_played(phase, times, None) / max(rates.values()):.0%} of the best; "
            + ", ".join(
                f"K={k} {rate:.0f}/s in {phase.steps.get(k, 0):.0f} steps"
                for k, rate in sorted(rates.items())
            )
        )
    lines += _dropped(phases, times)
    lines.append(f"tuned {shares.tuned:.1%} ± {error:.1%} of the oracle")
    lines.append(", ".join(f"K={k} {share:.1%}" for k, share in sorted(shares.fixed.items())))
    return Judged(shares, error, lines)


def _dropped(phases: Sequence[Counted], times: Times) -> list[str]:
    """The K that were played too little to be judged, by batch size."""
    return [
        f"not judged at batch {batch}: K={k}, fewer than {FEWEST_STEPS} steps"
        for batch in sorted({phase.batch for phase in phases})
        for k in sorted({k for phase in phases for k in phase.steps if phase.batch == batch})
        if (batch, k) not in times
    ]


def _shares(phases: Sequence[Counted], times: Times, chance: random.Random | None) -> Shares:
    """All phases count alike, as if they had taken equally long."""
    drawn = {at: (_drawn(mean, error, chance), 0.0) for at, (mean, error) in times.items()}
    rates = [_rates(phase, drawn, chance) for phase in phases]
    oracle = sum(max(by_length.values()) for by_length in rates)
    tuned = sum(_played(phase, drawn, chance) for phase in phases)
    everywhere = set.intersection(*(set(by_length) for by_length in rates))
    fixed = {k: sum(by_length[k] for by_length in rates) / oracle for k in everywhere}
    return Shares(tuned / oracle, fixed)


def _rates(phase: Counted, times: Times, chance: random.Random | None) -> dict[int, float]:
    """Tokens a second by K, as far as its steps were timed at this batch size."""
    return {
        k: phase.batch * phase.tokens(k, chance) / math.exp(mean)
        for (batch, k), (mean, _) in times.items()
        if batch == phase.batch and k <= len(phase.accepted)
    }


def _played(phase: Counted, times: Times, chance: random.Random | None) -> float:
    """Tokens a second of the steps that were played."""
    known = {k: n for k, n in phase.steps.items() if (phase.batch, k) in times}
    tokens = sum(n * phase.batch * phase.tokens(k, chance) for k, n in known.items())
    return tokens / sum(n * math.exp(times[phase.batch, k][0]) for k, n in known.items())


def _drawn(mean: float, error: float, chance: random.Random | None) -> float:
    return mean if chance is None else chance.gauss(mean, error)


def _counted(stretch: Stretch) -> Counted:
    steps: dict[int, float] = defaultdict(float)
    for (k, _, phase), change in _changes(stretch).items():
        if phase == "decode":
            steps[k] += change["steps"]
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    before = {tuple(entry[:2]): entry[2:] for entry in stretch.before["positions"]}
    for k, at, *counts in stretch.after["positions"]:
        for index, (now, was) in enumerate(zip(counts, before.get((k, at), (0, 0)), strict=True)):
            sums[at][index] += now - was
    accepted = [(sums[at][1] / sums[at][0], sums[at][0]) for at in sorted(sums) if sums[at][0]]
    return Counted(stretch.batch, steps, accepted)


def _times(stretches: Sequence[Stretch]) -> Times:
    """From the cells of exactly the phases' batch sizes."""
    sums: dict[tuple[int, int], Counts] = defaultdict(Counts)
    for stretch in stretches:
        for (k, cell, phase), change in _changes(stretch).items():
            if phase == "decode" and cell == stretch.batch:
                timed = {name: change[name] for name in ("steps", "log_us", "log_us_sq")}
                sums[stretch.batch, k] = sums[stretch.batch, k].plus(Counts(**timed))
    times = {}
    for (batch, k), counts in sums.items():
        time = step_time(k, counts) if counts.steps >= FEWEST_STEPS else None
        if time is not None:
            times[batch, k] = (time.mean - math.log(1e6), math.sqrt(time.variance))
    return times


def _changes(stretch: Stretch) -> dict[tuple[Any, ...], dict[str, float]]:
    """What each row (K, cell, phase) grew by."""
    names = stretch.after["columns"]
    before = {tuple(row[:3]): row for row in stretch.before["rows"]}
    changes = {}
    for row in stretch.after["rows"]:
        was = before.get(tuple(row[:3]), [*row[:3], *[0] * (len(names) - 3)])
        changes[tuple(row[:3])] = {
            name: now - then for name, now, then in zip(names[3:], row[3:], was[3:], strict=True)
        }
    return changes
