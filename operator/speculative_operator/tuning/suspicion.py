"""From single windows to a word: two far out of line say it, or three a third beyond the limit."""

from __future__ import annotations

from dataclasses import dataclass

FAR = 1.75
"""Limits beyond which a window counts no more: one alone never says it."""

SAID, MOST = 1.0, 2.0
"""Score at which it is said, and the highest: so two or three windows in line end it."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A cumulative sum: each window adds how many limits it lies out of line, less one.

    Hardly over the limit it takes many to say it; windows in line take it back, and `said` holds
    until nothing is left.
    """

    score: float = 0.0
    said: bool = False

    def after(self, ratio: float) -> Suspicion:
        """After a window whose number lies so many limits out of line."""
        score = min(max(self.score + min(ratio, FAR) - 1.0, 0.0), MOST)
        return Suspicion(score, score >= SAID or (self.said and score > 0.0))
