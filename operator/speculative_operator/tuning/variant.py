"""The two ways to run a model, with and without speculation in the engine's arguments, and what is
remembered of the second level: who is owed a restart, and what a step of engines that were started
with speculation costs over one of engines without: at K=0, or where K cannot change live, at the
only K that they play.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.cost import step_time
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.prior import Prior
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

GROWTH, GROWTH_ERROR = 0.3, 0.2
"""How a step's time grows with the batch, as a power of it, and how far that is known: not at all
while weights are what is read, in proportion once the GPU computes all the time."""

LEVEL_ERROR = 0.03
"""What a window's step time is off by, in logarithms, besides its own error: pods and prompts
differ between engines that are compared."""

AGEING = 0.02
"""How far a level may have moved in an hour, in logarithms, as its standard deviation grows."""

MISSED = 10.0
"""Seconds of the sum that are worth a write."""

FEWEST_REQUESTS = 5
REQUEST_LEARNING = 0.1
"""How fast the time of a request follows a window, from which so many requests tell."""

StepLevels = Mapping[int, "StepLevel"]


@dataclass(frozen=True, slots=True)
class StepLevel:
    """The mean logarithm of a decode step's microseconds at K=0, its variance, and when (Unix time)
    it was last seen."""

    mean: float
    variance: float
    at: float

    def aged(self, now: float) -> float:
        """The variance of the mean as a belief about `now`."""
        return self.variance + AGEING**2 * max(now - self.at, 0.0) / 3600.0

    def after(self, mean: float, variance: float, now: float) -> StepLevel:
        """With one more window."""
        known = self.aged(now)
        weight = known / (known + variance)
        return StepLevel(self.mean + weight * (mean - self.mean), (1 - weight) * known, now)


def step_levels_after(levels: StepLevels, window: Window, k: int, now: float) -> StepLevels:
    """The levels by batch cell with a window's decode-only steps at one K."""
    found = dict(levels)
    for key, counts in window.rows.items():
        if key.k != k or key.cell is None or key.phase is not Phase.DECODE:
            continue
        time = step_time(k, counts)
        if time is not None:
            variance = time.variance + LEVEL_ERROR**2
            known = found.get(key.cell)
            found[key.cell] = (
                StepLevel(time.mean, variance, now)
                if known is None
                else known.after(time.mean, variance, now)
            )
    return found


def request_seconds(window: Window | None) -> float | None:
    """How long a request decodes, by Little's law: the requests that run at a time over those that
    come; None where too few came, or engines do not count them."""
    if window is None or window.prompts is None or window.prompts.seen < FEWEST_REQUESTS:
        return None
    timed = (counts for counts in window.rows.values() if counts.steps)
    return sum(c.requests / c.steps * c.seconds for c in timed) / window.prompts.seen or None


def step_level_at(levels: StepLevels, batch: int) -> StepLevel | None:
    """The level at a batch cell, from the nearest one that was seen; None where none was."""
    nearest = min(levels, key=lambda cell: abs(math.log(cell / batch)), default=None)
    if nearest is None:
        return None
    apart, level = math.log(batch / nearest), levels[nearest]
    mean, variance = level.mean + GROWTH * apart, level.variance + (GROWTH_ERROR * apart) ** 2
    return StepLevel(mean, variance, level.at)


def assumed_cost(batch: int, k: int, prior: Prior) -> Estimate:
    """log of what a step at K costs over one of an engine without speculation, before anything was
    measured: the tax at K=0, and what the drafter's kind adds to it."""
    tax = Estimate(assumed_tax(batch), TAX_ERROR**2)
    if not k:
        return tax
    tokens = 1.0 + prior.slope * k
    slope = k * prior.slope_error / tokens
    variance = prior.price_error**2 + slope**2 + prior.own_error**2
    return Estimate(tax.mean + prior.price + math.log(tokens), tax.variance + variance)


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
    reference       the K whose steps are held against those of engines without speculation: 0, or
                    where K cannot change live the only one that is played
    lead, most      by how much this variant was ahead at a stretch: now, and at the most
    difference      log of goodput without speculation over that with it, at the last window's load;
                    None where too little of it is known
    patience        how many times the price of a restart has grown, since it came back
    looking         one look at speculation from the autoregressive variant is under way
    trying          a look at engines without speculation is under way, since nothing else tells
                    how fast they are
    look_windows    windows of the variant that is looked at, since its look began
    in_vain         looks in a row that have found nothing
    looked          when the last one ended
    startup         seconds from a pod's start to Ready, None before one was seen
    surged          whether the last change started one pod more first; None before there was one
    request         seconds that a request takes, None while that is not known
    live, plain     step times with speculation in the arguments, at the reference, and without, by
                    batch cell
    best            log of the best live goodput over that of the reference's steps with one token
                    each, by bucket, when last seen
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
    reference: int = 0
    patience: int = 0
    looking: bool = False
    trying: bool = False
    look_windows: int = 0
    in_vain: int = 0
    looked: float = 0.0
    startup: float | None = None
    surged: bool | None = None
    request: float | None = None
    live: StepLevels = field(default_factory=dict)
    plain: StepLevels = field(default_factory=dict)
    best: Mapping[int, float] = field(default_factory=dict)
    goodput: float | None = None
    advised: bool = False

    def cost(self, batch: int, prior: Prior) -> Estimate:
        """log of what a step costs over one without speculation, at a batch cell: what was
        measured, held against what is assumed. At K=0 it is log (1 + tax)."""
        assumed = assumed_cost(batch, self.reference, prior)
        live, plain = step_level_at(self.live, batch), step_level_at(self.plain, batch)
        if live is None or plain is None:
            return assumed
        latest = max(live.at, plain.at)
        variance = live.aged(latest) + plain.aged(latest)
        weight = assumed.variance / (assumed.variance + variance)
        ratio = live.mean - plain.mean
        return Estimate(assumed.mean + weight * (ratio - assumed.mean), variance * weight)

    @property
    def away(self) -> bool:
        """Whether engines without speculation are wanted."""
        return self.variant is Variant.AUTOREGRESSIVE

    @property
    def has_moved(self) -> bool:
        """Whether it is, or was lately, without speculation; else there is no other variant."""
        return self.away or self.looking or self.patience > 0 or self.in_vain > 0

    def worth_saving(self, before: Restart) -> bool:
        """Whether something changed that a new operator would miss. That a first start has arrived
        it sees."""
        if self.live.keys() != before.live.keys() or self.plain.keys() != before.plain.keys():
            return True
        arrived = self.has_moved and self.arrived != before.arrived
        return abs(self.owed - before.owed) > MISSED or arrived

    def learned(self, live: Window | None, plain: Window | None, now: float) -> Restart:
        """With what a window of each kind of engine shows of step times."""
        of = self.reference
        request = request_seconds(live) or request_seconds(plain)
        if request is not None and self.request is not None:
            request = self.request + REQUEST_LEARNING * (request - self.request)
        return replace(
            self,
            request=self.request if request is None else request,
            live=step_levels_after(self.live, live, of, now) if live is not None else self.live,
            plain=step_levels_after(self.plain, plain, 0, now) if plain is not None else self.plain,
        )

    def after_pods(self, pods: int, *, of: int) -> Restart:
        """With what the pods that run or start during a change say of a surge."""
        if self.arrived or not self.has_moved:
            return self
        return self if pods <= of else replace(self, surged=True)

    def referring_to(self, k: int) -> Restart:
        """What was measured at another K is of no use."""
        return self if k == self.reference else replace(self, reference=k, live={}, best={})
