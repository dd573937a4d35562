"""Simple policies, as they are in use or in the literature, to compare with.

Each sees the same windows and plays by the same rules as the product. A rule that needs more than
K in force plays whole windows, but for Thompson sampling, which probes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.replay.engine import Play, Seen
from benchmarks.replay.episodes import Episode
from speculative_operator.api.speculation import BLOCK_DRAFTERS

START = 7
"""K that rules without a better one begin at."""


class Player(Protocol):
    """Chooses what is played next at a batch size, and sees what came of it."""

    def play(self, batch: int) -> Play: ...

    def see(self, seen: Seen | None) -> None: ...


def at_most(arms: tuple[int, ...], k: int) -> int:
    """The longest arm above 0 up to K, else the shortest."""
    return max((arm for arm in arms if 0 < arm <= k), default=min(arm for arm in arms if arm))


@dataclass
class Fixed:
    """The same K always."""

    length: int

    def play(self, batch: int) -> Play:
        return Play(self.length)

    def see(self, seen: Seen | None) -> None:
        pass


def fixed_7(episode: Episode) -> Player:
    return Fixed(at_most(episode.arms, START))


def by_drafter(episode: Episode) -> Player:
    """7 for a block drafter, else 4."""
    return Fixed(at_most(episode.arms, 7 if episode.method in BLOCK_DRAFTERS else 4))


def never(episode: Episode) -> Player:
    return Fixed(0)


MEMORY = 0.8
"""What acceptance rules keep of earlier windows."""


@dataclass
class ByAcceptance:
    """Rules on acceptance alone: `longest(p_1 … p_K)` is the K that it wants. They begin at the
    longest K, which shows every position.

    If even the last position ever seen is good enough, the next longer arm is asked for.
    """

    arms: tuple[int, ...]
    longest: Callable[[list[float]], float]
    memory: float = MEMORY
    length: int = 0
    known: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.length = max(self.arms)

    def play(self, batch: int) -> Play:
        return Play(self.length)

    def see(self, seen: Seen | None) -> None:
        if seen is None:
            return
        look = seen.looks[self.length]
        new = [count / look.drafts for count in look.accepted]
        for at, p in enumerate(new):
            if at < len(self.known):
                self.known[at] += (1 - self.memory) * (p - self.known[at])
            else:
                self.known.append(p)
        wanted = self.longest(self.known)
        if wanted == len(self.known):
            wanted = min((k for k in self.arms if k > wanted), default=wanted)
        self.length = at_most(self.arms, round(wanted))


def positions_above(episode: Episode) -> Player:
    """As many positions as have p_i >= .3."""
    return ByAcceptance(episode.arms, lambda known: sum(p >= 0.3 for p in known))


def rate_above(episode: Episode) -> Player:
    """The longest K with an acceptance rate >= .5."""

    def longest(known: list[float]) -> float:
        rates = [sum(known[:k]) / k for k in range(1, len(known) + 1)]
        return max((k for k, rate in enumerate(rates, 1) if rate >= 0.5), default=0)

    return ByAcceptance(episode.arms, longest)


@dataclass
class Rounded:
    """SGLang's: the moving average of accepted tokens, rounded, and one more."""

    arms: tuple[int, ...]
    length: int
    average: float | None = None

    def play(self, batch: int) -> Play:
        return Play(self.length)

    def see(self, seen: Seen | None) -> None:
        if seen is None:
            return
        accepted = seen.looks[self.length].length - 1.0
        old = accepted if self.average is None else self.average
        self.average = 0.8 * old + 0.2 * accepted
        self.length = at_most(self.arms, round(self.average) + 1)


def rounded(episode: Episode) -> Player:
    return Rounded(episode.arms, at_most(episode.arms, START))


@dataclass
class TurboSpec:
    """TurboSpec's shape: one chance a for every token, a cost line in K, longer until the first
    decrease, 10% over K=0 wanted.

    The line is profiled first: the starting K, K=0 and the shortest K each for one window.
    """

    arms: tuple[int, ...]
    profile: list[int]
    times: dict[int, float] = field(default_factory=dict)
    chance: float | None = None

    def play(self, batch: int) -> Play:
        return Play(self.profile[0] if self.profile else self._best())

    def see(self, seen: Seen | None) -> None:
        if seen is None:
            return
        for k, look in seen.looks.items():
            if self.profile:
                self.times[k] = math.exp(look.log_ms)
                self.profile = [other for other in self.profile if other != k]
            if k:
                rejected = look.drafts - look.accepted[-1]
                chance = sum(look.accepted) / max(sum(look.accepted) + rejected, 1)
                old = chance if self.chance is None else self.chance
                self.chance = 0.85 * old + 0.15 * chance

    def _best(self) -> int:
        long, short = max(self.times), min(k for k in self.times if k)
        slope = (self.times[long] - self.times[short]) / max(long - short, 1)
        best, most = 0, 0.0
        for k in self.arms[1:]:
            length = sum((self.chance or 0.0) ** i for i in range(k + 1))
            goodput = length / max(self.times[short] + slope * (k - short), 1e-9)
            if goodput <= most:
                break
            best, most = k, goodput
        return best if most > 1.1 / self.times[0] else 0


def turbospec(episode: Episode) -> Player:
    start = at_most(episode.arms, START)
    shortest = min(k for k in episode.arms if k)
    return TurboSpec(episode.arms, list(dict.fromkeys((start, 0, shortest))))


REST = 5
"""Windows that hill climbing plays its K between two tries."""


@dataclass
class HillClimbing:
    """Tries a neighbour for a window; keeps it if it brings 2% more than K before it."""

    arms: tuple[int, ...]
    at: int
    step: int = -1
    waited: int = 0
    tried: int | None = None
    known: float | None = None

    def play(self, batch: int) -> Play:
        return Play(self.arms[self.at if self.tried is None else self.tried])

    def see(self, seen: Seen | None) -> None:
        if seen is None:
            return
        brought = next(iter(seen.looks.values())).log_goodput
        if self.tried is None:
            old = brought if self.known is None else self.known
            self.known = 0.5 * old + 0.5 * brought
            self.waited += 1
            if self.waited >= REST:
                self._try()
        elif self.known is not None and brought > self.known + math.log(1.02):
            self.at, self.tried, self.known = self.tried, None, brought
            self._try()
        else:
            self.tried, self.waited, self.step = None, 0, -self.step

    def _try(self) -> None:
        self.waited = 0
        if not 0 <= self.at + self.step < len(self.arms):
            self.step = -self.step
        self.tried = self.at + self.step


def hill_climbing(episode: Episode) -> Player:
    return HillClimbing(episode.arms, episode.arms.index(at_most(episode.arms, START)))


@dataclass
class UpperConfidence:
    """UCB1 over goodput, relative to the highest mean; whole windows."""

    arms: tuple[int, ...]
    sums: dict[int, float] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    WIDTH = 0.35

    def play(self, batch: int) -> Play:
        for k in reversed(self.arms):
            if k not in self.counts:
                return Play(k)
        means = {k: self.sums[k] / self.counts[k] for k in self.arms}
        most, total = max(means.values()), sum(self.counts.values())

        def bound(k: int) -> float:
            return means[k] / most + self.WIDTH * math.sqrt(2 * math.log(total) / self.counts[k])

        return Play(max(self.arms, key=bound))

    def see(self, seen: Seen | None) -> None:
        if seen is not None:
            ((k, look),) = seen.looks.items()
            self.sums[k] = self.sums.get(k, 0.0) + math.exp(look.log_goodput)
            self.counts[k] = self.counts.get(k, 0) + 1


def upper_confidence(episode: Episode) -> Player:
    return UpperConfidence(episode.arms)


@dataclass
class Thompson:
    """Thompson sampling over log goodput: the K that is drawn is probed, the best mean played."""

    arms: tuple[int, ...]
    length: int
    chance: random.Random
    beliefs: dict[int, tuple[float, float]] = field(default_factory=dict)

    WIDE, NOISE, SHARE = 0.3, 0.05, 0.25

    def play(self, batch: int) -> Play:
        if not self.beliefs:
            return Play(self.length)
        middle = sum(mean for mean, _ in self.beliefs.values()) / len(self.beliefs)

        def drawn(k: int) -> float:
            mean, variance = self.beliefs.get(k, (middle, self.WIDE**2))
            return self.chance.gauss(mean, math.sqrt(variance))

        wanted = max(self.arms, key=drawn)
        tried = () if wanted == self.length else (wanted,)
        return Play(self.length, tried, self.SHARE)

    def see(self, seen: Seen | None) -> None:
        if seen is None:
            return
        for k, look in seen.looks.items():
            noise = self.NOISE**2
            mean, variance = self.beliefs.get(k, (look.log_goodput, math.inf))
            gain = 1.0 if variance == math.inf else variance / (variance + noise)
            variance = noise if variance == math.inf else (1 - gain) * variance + 1e-5
            self.beliefs[k] = (mean + gain * (look.log_goodput - mean), variance)
        self.length = max(self.beliefs, key=lambda k: self.beliefs[k][0])


def thompson(episode: Episode) -> Player:
    return Thompson(episode.arms, at_most(episode.arms, START), random.Random(episode.seed))


BASELINES: Mapping[str, Callable[[Episode], Player]] = {
    "fixed 7": fixed_7,
    "7 if block, else 4": by_drafter,
    "K=0": never,
    "p_i >= .3": positions_above,
    "acceptance rate >= .5": rate_above,
    "SGLang round(acc)+1": rounded,
    "TurboSpec-like": turbospec,
    "hill climbing 2%": hill_climbing,
    "UCB1": upper_confidence,
    "Thompson, quarter probes": thompson,
}
