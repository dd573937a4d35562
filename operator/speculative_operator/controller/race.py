"""Two revisions side by side under the same traffic: what their pages say of their speed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from speculative_operator.controller.answers import Answer, gathered, pages_of
from speculative_operator.plan.trial import NotCompared, Speed
from speculative_operator.tuning.contest import contest
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.window import Window

QUIET_SECONDS: Final = 5.0
"""Without a request for so long there is no traffic to compare speed under; and engines that gave
no page in that time will give none."""


@dataclass(frozen=True)
class Race:
    """What both revisions have done since the pod on trial was put on the Service."""

    opened: float
    running: Gathering = field(default=Gathering(opened=0.0))
    new: Gathering = field(default=Gathering(opened=0.0))
    pages: tuple[Page, ...] = ()

    def read(self, running: Mapping[str, Answer], new: Mapping[str, Answer], now: float) -> Race:
        """With one more reading of all engines."""
        return replace(
            self,
            running=gathered(replace(self.running, opened=self.opened), running, running, now),
            new=gathered(replace(self.new, opened=self.opened), new, new, now),
            pages=(*pages_of(running), *pages_of(new)),
        )

    def speed(self, arms: Iterable[int], now: float) -> Speed | None:
        """How they compare; None while too little is known to say anything."""
        waited = now - self.opened >= QUIET_SECONDS
        if any(not page.plugin or not page.measured for page in self.pages) or (
            waited and not (self.running.latest and self.new.latest)
        ):
            return NotCompared("Speed is not compared: the engines do not report step times.")
        if self._quiet and waited:
            return NotCompared("Speed is not compared: there are no requests.")
        running, new = self.running.window(), self.new.window()
        if not isinstance(running, Window) or not isinstance(new, Window):
            return None
        return contest(running, new, tuple(arms))

    @property
    def _quiet(self) -> bool:
        parts = (*self.running.windows().values(), *self.new.windows().values())
        idle = not any(page.running or page.waiting for page in self.pages)
        return idle and not any(part.rows for part in parts)
