"""One engine in an episode: plays what a policy asks for, with the noise of the facts.

A window brings 400 drafts. Acceptance is binomial after a jitter of the logits that all K of a
window share. Three ways to measure another K:

whole        the other K alone, for a whole window
quarter      one other K for a quarter of the window: a quarter of the drafts, 1.5 times the noise;
             for less of it as much noisier as steps are fewer
interleaved  a share of the steps in blocks: times of all K share what the machine does in that
             window, an arm with the share f of the steps has the noise sd / sqrt(f) of its own
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.replay.episodes import Condition, Episode

DRAFTS = 400
STEPS = 100
"""Of a window. Drafts are effective ones, so they are no multiple of the steps."""

JITTER = 0.10
"""Standard deviation of the logit of every p_i, shared by a window."""

SLOW_SHARE, SLOW = 0.02, 2.0
"""How many looks are slow, and by how much."""

PROBE_NOISE = 1.5
SETTLING = 2
"""Steps after a change of K that are not timed."""


class Measuring(StrEnum):
    """How another K is measured."""

    WHOLE = "whole"
    QUARTER = "quarter"
    INTERLEAVED = "interleaved"


SHARE = {Measuring.WHOLE: 1.0, Measuring.QUARTER: 0.25, Measuring.INTERLEAVED: 0.25}
"""Of a window that trials may take."""


@dataclass(frozen=True)
class Play:
    """K in force and the K on trial, `share` of the steps for all of them, in blocks."""

    length: int
    tried: tuple[int, ...] = ()
    share: float = 0.0
    block: int = STEPS


@dataclass(frozen=True)
class Shown:
    """What a window shows of one K: `accepted[i]` drafts had their first i+1 tokens accepted."""

    drafts: int
    accepted: tuple[int, ...]
    steps: float
    log_ms: float

    @property
    def length(self) -> float:
        """E as measured."""
        return 1.0 + sum(self.accepted) / self.drafts

    @property
    def log_goodput(self) -> float:
        """Of tokens a millisecond and request, as measured."""
        return math.log(self.length) - self.log_ms


@dataclass(frozen=True)
class Seen:
    """What one window shows."""

    batch: int
    looks: Mapping[int, Shown]


@dataclass
class Engine:
    """Plays an episode. `goodputs` has the noise-free goodput of each window played."""

    episode: Episode
    measuring: Measuring
    goodputs: list[float] = field(default_factory=list)

    def window(self, play: Play) -> Seen | None:
        """Plays one more window; None where nothing is heard of it."""
        number = len(self.goodputs)
        condition = self.episode.conditions[number]
        shares = self._shares(play)
        self.goodputs.append(_goodput(condition, shares, self.measuring))
        if number in self.episode.gaps:
            return None
        chance = random.Random(self.episode.seed * 1000 + number)
        return Seen(condition.batch, self._looks(condition, shares, play, chance))

    def _shares(self, play: Play) -> dict[int, float]:
        """Share of the window by K."""
        tried = [k for k in play.tried if k != play.length]
        if self.measuring is not Measuring.INTERLEAVED:
            tried = tried[:1]
        if not tried:
            return {play.length: 1.0}
        rest = 1.0 - play.share
        shares = {play.length: rest} if rest > 0 else {}
        return shares | {k: play.share / len(tried) for k in tried}

    def _looks(
        self, condition: Condition, shares: Mapping[int, float], play: Play, chance: random.Random
    ) -> dict[int, Shown]:
        jitter = chance.gauss(0.0, JITTER)
        common = chance.gauss(0.0, self.episode.noise) + _slow(chance)
        looks = {}
        for k, share in shares.items():
            drafts = max(round(DRAFTS * share), 1)
            steps = STEPS * share
            noise = self.episode.noise
            if self.measuring is Measuring.INTERLEAVED and len(shares) > 1:
                if k != play.length:
                    steps *= max(1 - SETTLING / play.block, 0.0)
                offset = common + chance.gauss(0.0, noise * math.sqrt(STEPS / max(steps, 1e-9)))
            elif len(shares) > 1 and k != play.length:
                shorter = math.sqrt(SHARE[Measuring.QUARTER] / share)
                offset = chance.gauss(0.0, noise * PROBE_NOISE * shorter) + _slow(chance)
            else:
                offset = chance.gauss(0.0, noise / math.sqrt(share)) + _slow(chance)
            looks[k] = Shown(
                drafts=drafts,
                accepted=_accepted(condition.acceptance[k], drafts, jitter, chance),
                steps=steps,
                log_ms=math.log(condition.step_ms[k]) + offset,
            )
        return looks


def _slow(chance: random.Random) -> float:
    return math.log(SLOW) if chance.random() < SLOW_SHARE else 0.0


def _goodput(condition: Condition, shares: Mapping[int, float], measuring: Measuring) -> float:
    """Shares of time for probes, of steps where steps are interleaved."""
    if measuring is not Measuring.INTERLEAVED:
        return sum(share * condition.goodput[k] for k, share in shares.items())
    tokens = sum(share * condition.lengths[k] for k, share in shares.items())
    return tokens / sum(share * condition.step_ms[k] for k, share in shares.items())


def _accepted(
    chances: Sequence[float], drafts: int, jitter: float, chance: random.Random
) -> tuple[int, ...]:
    """Drafts whose first tokens are all accepted, by position; each is part of the one before."""
    before, left = 1.0, drafts
    counts = []
    for p in chances:
        moved = p / (p + (1.0 - p) * math.exp(-jitter)) if p else 0.0
        left = _binomial(left, min(moved / before, 1.0) if before else 0.0, chance)
        counts.append(left)
        before = moved
    return tuple(counts)


def _binomial(n: int, p: float, chance: random.Random) -> int:
    """So many of n. By a normal distribution where it is close, else one by one."""
    if p <= 0.0 or not n:
        return 0
    if p >= 1.0:
        return n
    if n * min(p, 1.0 - p) > 9.0:
        drawn = round(chance.gauss(n * p, math.sqrt(n * p * (1.0 - p))))
        return min(max(drawn, 0), n)
    rare = min(p, 1.0 - p)
    hits, at, scale = 0, -1, math.log1p(-rare)
    while True:
        at += 1 + int(math.log(1.0 - chance.random()) / scale)
        if at >= n:
            break
        hits += 1
    return hits if p <= 0.5 else n - hits
