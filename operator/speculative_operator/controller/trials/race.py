"""Two revisions side by side under the same traffic: what their pages say of their speed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from speculative_operator.controller.tuner.answers import Answers, gathered, pages_of
from speculative_operator.plan.trial import Hangs, NotCompared, Speed
from speculative_operator.tuning.contest import contest
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.hang import HANG_SECONDS, Pulse, pulse
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.window import Window, merged

QUIET_SECONDS: Final = 5.0
"""Without a request for so long there is no traffic to compare speed under."""

SILENT_SECONDS: Final = 30.0
"""Engines that gave no page in that time will give none."""


@dataclass(frozen=True)
class Side:
    """What the engines of one revision have done, between one reading and the next. `heard` is when
    one of them gave a page the last time, and `timed` whether one has ever told step times: the
    plugin of an engine that is ending goes first."""

    open: Gathering
    heard: float | None = None
    timed: bool = False
    stretches: tuple[Window, ...] = ()
    pages: tuple[Page, ...] = ()
    pulses: Mapping[str, Pulse] = field(default_factory=dict)

    def read(self, answers: Answers, now: float) -> Side:
        """With one more reading of all of them."""
        gathering = gathered(self.open, answers, answers, now)
        stretch, pages = merged(gathering.windows().values()), tuple(pages_of(answers))
        return Side(
            open=gathering.next(now),
            heard=now if pages else self.heard,
            timed=self.timed or any(page.plugin and page.measured for page in pages),
            stretches=(*self.stretches, stretch) if stretch.rows else self.stretches,
            pages=pages,
            pulses={
                uid: pulse(self.pulses.get(uid), page, now)
                for uid, page in answers.items()
                if isinstance(page, Page)
            },
        )

    @property
    def hangs(self) -> bool:
        """Whether an engine has requests and ends no step."""
        return any(each.hangs for each in self.pulses.values())

    def mute(self, now: float) -> bool:
        """Whether no engine gives pages any more."""
        return self.heard is not None and now - self.heard >= HANG_SECONDS

    @property
    def silent(self) -> bool:
        """Whether no engine has given a page yet."""
        return self.heard is None

    @property
    def idle(self) -> bool:
        """Whether no engine has a request, or has ended a step."""
        return not self.stretches and not any(page.running or page.waiting for page in self.pages)


@dataclass(frozen=True)
class Race:
    """What both revisions have done since the pod on trial was put on the Service."""

    opened: float
    running: Side
    new: Side

    @classmethod
    def at(cls, now: float) -> Race:
        """That begins."""
        side = Side(Gathering(opened=now))
        return cls(opened=now, running=side, new=side)

    def read(self, running: Answers, new: Answers, now: float) -> Race:
        """With one more reading of all engines."""
        return replace(self, running=self.running.read(running, now), new=self.new.read(new, now))

    def speed(self, arms: Iterable[int], now: float) -> Speed | None:
        """How they compare; None while nothing can be said."""
        since, sides = now - self.opened, (self.running, self.new)
        if self.new.hangs or (self.new.mute(now) and not self.running.mute(now)):
            return Hangs()
        untimed = any(side.pages and not side.timed for side in sides)
        silent = any(side.silent for side in sides)
        if untimed or (silent and since >= SILENT_SECONDS):
            return NotCompared("Speed is not compared: the engines do not report step times.")
        if silent:
            return None
        if all(side.idle for side in sides) and since >= QUIET_SECONDS:
            return NotCompared("Speed is not compared: there are no requests.")
        return contest(self.running.stretches, self.new.stretches, tuple(arms))
