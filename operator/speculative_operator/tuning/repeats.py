"""Traffic that asks the same again and again, as a load generator or a health check does.

Acceptance on it says nothing of real prompts (seen in the field: 3.9 tokens a step against a real
1.9). Acceptance itself does not show it: a window that holds no whole number of equal answers
scatters as real traffic does, and a draft may be sound at any level. So the plugin counts prompts
that equal one of the last few.
"""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.tuning.page import Prompts

FADING = 0.9
"""What counts keep from window to window."""

LEAST = 30.0
"""Prompts from which a share is told."""

SAID, OVER = 0.95, 0.80
"""Share of repeated prompts from which it is said, and below which it is over."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Fading counts of prompts and of those that repeat another."""

    seen: float = 0.0
    repeated: float = 0.0
    said: bool = False

    def after(self, prompts: Prompts | None) -> Repeats:
        """One window later; None where the engines do not count prompts."""
        if prompts is None:
            return self
        seen = self.seen * FADING + prompts.seen
        repeated = self.repeated * FADING + prompts.repeated
        if seen < LEAST:
            return Repeats(seen, repeated, self.said)
        return Repeats(seen, repeated, repeated / seen >= (OVER if self.said else SAID))
