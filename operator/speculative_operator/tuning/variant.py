"""The two ways to run a model, with and without speculation in the engine's arguments, and what is
remembered of the second level: who is owed a restart, and what K=0 costs over true autoregressive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from speculative_operator.tuning.acceptance import Estimate
from speculative_operator.tuning.cost import step_time
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.window import Window


class Variant(StrEnum):
    """How a revision runs its model; in the key of a revision."""

    SPECULATIVE = "speculative"
    AUTOREGRESSIVE = "autoregressive"


@dataclass(frozen=True, slots=True)
class VariantChoice:
    """What the tuner wants of the revision `key`, the speculative one. With `sensor` one of two or
    more replicas speculates although the variant is autoregressive."""

    key: str
    variant: Variant = Variant.SPECULATIVE
    sensor: bool = False


TAX_AT = ((1, 0.066), (189, 0.216))
"""K=0 in an engine started with speculation over one without, as a share of the step, by running
requests: the two measured points of the facts. In between it is taken to grow with log batch."""

TAX_ERROR = 0.06
"""Standard deviation of log (1 + tax) around that, before it was measured for a model."""

LEVEL_ERROR = 0.03
"""What a window's step time is off by, in logarithms, besides its own error: pods and prompts
differ between engines that are compared."""

AGEING = 0.02
"""How far a level may have moved in an hour, in logarithms, as its standard deviation grows."""

MISSED = 10.0
"""Seconds of the sum that are worth a write."""

Levels = Mapping[int, "Level"]


@dataclass(frozen=True, slots=True)
class Level:
    """The mean logarithm of a decode step's microseconds at K=0, its variance, and when (Unix time)
    it was last seen."""

    mean: float
    variance: float
    at: float

    def aged(self, now: float) -> float:
        """The variance of the mean as a belief about `now`."""
        return self.variance + AGEING**2 * max(now - self.at, 0.0) / 3600.0

    def after(self, mean: float, variance: float, now: float) -> Level:
        """With one more window."""
        known = self.aged(now)
        weight = known / (known + variance)
        return Level(self.mean + weight * (mean - self.mean), (1 - weight) * known, now)


def levels_after(levels: Levels, window: Window, now: float) -> Levels:
    """The levels by batch cell with a window's decode-only steps at K=0."""
    found = dict(levels)
    for key, counts in window.rows.items():
        if key.k or key.cell is None or key.phase is not Phase.DECODE:
            continue
        time = step_time(0, counts)
        if time is not None:
            variance = time.variance + LEVEL_ERROR**2
            known = found.get(key.cell)
            found[key.cell] = (
                Level(time.mean, variance, now)
                if known is None
                else known.after(time.mean, variance, now)
            )
    return found


def assumed_tax(batch: int) -> float:
    """log (1 + tax) at a batch size before anything was measured."""
    (low, least), (high, most) = TAX_AT
    share = math.log(max(batch, low) / low) / math.log(high / low)
    return math.log1p(least + min(share, 1.0) * (most - least))


@dataclass(frozen=True, slots=True)
class Restart:
    """The second level's part of the state. Times are Unix time.

    variant         wanted
    since           when it was last changed; None before the first decision
    arrived         engines of that variant were ready since
    owed            seconds of goodput that the other variant would have brought since, less those
                    that it would have cost: log of the ratio of both goodputs, times seconds
    lead, most      by how much this variant was ahead at a stretch: now, and at the most
    difference      log of goodput without speculation over that with it, at the last window's load;
                    None where too little of it is known
    patience        how many times the price of a restart has grown, since it came back
    looking         one look at speculation from the autoregressive variant is under way
    look_from       number of windows at its start
    looks           looks in a row that have found nothing
    looked          when the last one ended
    startup         seconds from a pod's start to Ready, None before one was seen
    live, plain     step times at K=0 with and without speculation in the arguments, by batch cell
    best            log of the best live goodput over that of K=0, by bucket, when last seen
    goodput         measured before the last change, until its outcome is told
    advised         it was told that a restart would pay which the policy does not allow
    """

    variant: Variant = Variant.SPECULATIVE
    since: float | None = None
    arrived: bool = False
    owed: float = 0.0
    lead: float = 0.0
    most: float = 0.0
    difference: float | None = None
    patience: int = 0
    looking: bool = False
    look_from: int = 0
    looks: int = 0
    looked: float = 0.0
    startup: float | None = None
    live: Levels = field(default_factory=dict)
    plain: Levels = field(default_factory=dict)
    best: Mapping[int, float] = field(default_factory=dict)
    goodput: float | None = None
    advised: bool = False

    def tax(self, batch: int) -> Estimate:
        """log (1 + tax) at a batch cell: what was measured, held against what is assumed."""
        prior = Estimate(assumed_tax(batch), TAX_ERROR**2)
        live, plain = self.live.get(batch), self.plain.get(batch)
        if live is None or plain is None:
            return prior
        latest = max(live.at, plain.at)
        variance = live.aged(latest) + plain.aged(latest)
        weight = prior.variance / (prior.variance + variance)
        ratio = live.mean - plain.mean
        return Estimate(prior.mean + weight * (ratio - prior.mean), variance * weight)

    @property
    def has_moved(self) -> bool:
        """Whether it is, or was lately, without speculation; else there is no other variant."""
        return self.variant is Variant.AUTOREGRESSIVE or self.looking or self.patience > 0

    def worth_saving(self, before: Restart) -> bool:
        """Whether something changed that a new operator would miss. That a first start has arrived
        it sees."""
        if self.live.keys() != before.live.keys() or self.plain.keys() != before.plain.keys():
            return True
        arrived = self.has_moved and self.arrived != before.arrived
        return abs(self.owed - before.owed) > MISSED or arrived

    def learned(self, live: Window | None, plain: Window | None, now: float) -> Restart:
        """With what a window of each kind of engine shows of step times at K=0."""
        return replace(
            self,
            live=levels_after(self.live, live, now) if live is not None else self.live,
            plain=levels_after(self.plain, plain, now) if plain is not None else self.plain,
        )
