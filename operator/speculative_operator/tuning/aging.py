"""Acceptance that falls with the hours that an engine has run, which a restart mends.

Engines of one age cannot tell it from a change of traffic: only one that was started since can. So
first tokens are counted by the age of the engine at that time. A fresh engine under today's traffic
writes into the first hour again: the fall stands if it accepts as many as others did when they
were fresh, and is gone from the books if it accepts as few as they do now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from speculative_operator.tuning.faults import first_tokens
from speculative_operator.tuning.window import Window

HOUR = 3600.0
AGES = ("0-1", "1-2", "2-4", "4-8", "8-16", "over 16")
"""Hours of the counts, each about twice as wide as the one before."""

LEAST, MOST = 1000.0, 20_000.0
"""First tokens that an age needs to be told of; beyond MOST older ones fade."""

FALLS = 3
"""Ages in a row that must lie below the one before: one shift of traffic makes at most two."""

STEP, WHOLE = 0.03, 0.20
"""Least share lost from age to age, and from the first to the last."""


class Tokens(NamedTuple):
    """First draft tokens of engines of one age."""

    drafted: float = 0.0
    accepted: float = 0.0

    @property
    def share(self) -> float:
        return self.accepted / self.drafted

    def plus(self, drafted: float, accepted: float) -> Tokens:
        """With more; no more than MOST count."""
        kept = max(min(1.0, (MOST - drafted) / self.drafted), 0.0) if self.drafted else 0.0
        return Tokens(self.drafted * kept + drafted, self.accepted * kept + accepted)


@dataclass(frozen=True, slots=True)
class Aging:
    """Tokens by age. `proof` counts those of engines that were started after a fall was seen;
    `message` is what is told of the fall, with the figures of when it was first told, or ""."""

    ages: tuple[Tokens, ...] = (Tokens(),) * len(AGES)
    proof: float = 0.0
    message: str = ""

    def after(self, engines: Iterable[tuple[float, Window]]) -> Aging:
        """With one window: of each engine the seconds since its start, and its part."""
        ages, fresh = list(self.ages), 0.0
        for uptime, window in engines:
            drafted, accepted = first_tokens(window)
            if drafted:
                age = _age(uptime)
                ages[age] = ages[age].plus(drafted, accepted * drafted)
                fresh += drafted if age == 0 else 0.0
        after = Aging(tuple(ages))
        if not after.falls:
            return after
        proof = min(self.proof + fresh, MOST) if self.message else 0.0
        after = replace(after, proof=proof, message=self.message)
        if self.message and self.proven == after.proven:
            return after
        return replace(after, message=after.described())

    @property
    def proven(self) -> bool:
        """Whether an engine started since the fall has shown that traffic is not the cause."""
        return self.proof >= LEAST

    @property
    def falls(self) -> bool:
        """Whether each age that was seen accepts fewer than the one before, from fresh engines
        on."""
        seen = [tokens.share for tokens in self.ages if tokens.drafted >= LEAST]
        if len(seen) <= FALLS or self.ages[0].drafted < LEAST:
            return False
        steady = all(b < a * (1 - STEP) for a, b in pairwise(seen))
        return steady and seen[-1] < seen[0] * (1 - WHOLE)

    def described(self) -> str:
        """The fall in words."""
        last = max(age for age, tokens in enumerate(self.ages) if tokens.drafted >= LEAST)
        course = (
            f"Of first draft tokens {self.ages[0].share:.0%} are accepted in the first hour after "
            f"an engine's start and {self.ages[last].share:.0%} after {AGES[last]} hours. "
        )
        if self.proven:
            return course + (
                "Engines started since accept as many as the others did when fresh, so traffic is "
                "not the cause: the engines age. Restart them (speculation.dev/refresh), and "
                "report it to vLLM."
            )
        return course + (
            "The engines age, or traffic has changed. Delete one pod: if its successor accepts "
            "many again, restart all (speculation.dev/refresh)."
        )


def _age(uptime: float) -> int:
    hours = max(uptime, 0.0) / HOUR
    return 0 if hours < 1 else min(int(math.log2(hours)) + 1, len(AGES) - 1)
