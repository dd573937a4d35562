"""The engines of one model that were started without speculation: their windows, and no schedule.

What they show is the step time of true autoregressive decoding, which K=0 in a speculative engine
is held against.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from speculative_operator.controller.tuner.answers import Answers, gathered
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.history import kept
from speculative_operator.tuning.policy import WindowLimits
from speculative_operator.tuning.window import NoEvidence, Window, merged


@dataclass(frozen=True, slots=True)
class PlainEngines:
    """Their open window, the last one if it closed with this reading, and why it was no evidence.
    Their counters are not saved: a new operator begins a new window."""

    gathering: Gathering
    closed: Window | None = None
    gap: NoEvidence | None = None

    def read(self, answers: Answers, limits: WindowLimits, now: float) -> PlainEngines:
        """With what all of them answered now."""
        gathering = gathered(self.gathering, answers.keys(), answers, now)
        if not gathering.closes(limits, now):
            return replace(self, gathering=gathering, closed=None)
        window, opened = gathering.window(), gathering.next(now)
        if isinstance(window, NoEvidence):
            return PlainEngines(opened, gap=window)
        parts = (part.as_played(0) for part in gathering.windows().values())
        return PlainEngines(opened, closed=kept(merged(parts)))
