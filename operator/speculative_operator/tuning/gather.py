"""The window that is open: pages come in, and at its end one window of the whole fleet goes out.

It closes once it has enough drafts and is old enough, at the latest after its longest time. An
engine that is silent for a while loses nothing: its counters go on, and the next page that can be
read is compared with the last one that was absorbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.page import Counters, Page
from speculative_operator.tuning.policy import WindowLimits
from speculative_operator.tuning.window import (
    LEAST_DRAFTS,
    NoEvidence,
    Window,
    difference,
    merged,
)


@dataclass(frozen=True, slots=True)
class Gathering:
    """Per engine (pod UID) the counters at the window's start, and its part of the window.

    `bases` are what has been absorbed by closed windows: they are saved with the estimates.
    """

    opened: float
    bases: Mapping[str, Counters] = field(default_factory=dict)
    parts: Mapping[str, Window | NoEvidence] = field(default_factory=dict)
    latest: Mapping[str, Counters] = field(default_factory=dict)

    def read(self, engine: str, page: Page, now: float) -> Gathering:
        """With one more page. The first one of an engine's start only sets its base."""
        base = self.bases.get(engine)
        bases = self.bases
        if base is None:
            bases = {**bases, engine: page.counters}
            part: Window | NoEvidence = NoEvidence(
                Reason.NOT_ENOUGH_DRAFTS, "the engine was not known before"
            )
        else:
            part = difference(base, page, now - self.opened)
            if isinstance(part, NoEvidence):
                bases = {**bases, engine: page.counters}
        return replace(
            self,
            bases=bases,
            parts={**self.parts, engine: part},
            latest={**self.latest, engine: page.counters},
        )

    def silent(self, engine: str, gap: NoEvidence) -> Gathering:
        """Without a page of this engine; what it has shown in this window already still counts."""
        if isinstance(self.parts.get(engine), Window):
            return self
        return replace(self, parts={**self.parts, engine: gap})

    def of(self, engines: frozenset[str]) -> Gathering:
        """Of these engines only."""
        if self.bases.keys() <= engines and self.parts.keys() <= engines:
            return self
        return replace(
            self,
            bases={uid: base for uid, base in self.bases.items() if uid in engines},
            parts={uid: part for uid, part in self.parts.items() if uid in engines},
            latest={uid: last for uid, last in self.latest.items() if uid in engines},
        )

    def windows(self) -> Mapping[str, Window]:
        """What each engine has shown so far, of those that have shown anything."""
        return {uid: part for uid, part in self.parts.items() if isinstance(part, Window)}

    def window(self) -> Window | NoEvidence:
        """What there is so far; the reason of the first engine if none of them gives anything."""
        windows = self.windows()
        if not windows:
            gaps = [part for _, part in sorted(self.parts.items()) if isinstance(part, NoEvidence)]
            return gaps[0] if gaps else NoEvidence(Reason.NO_TRAFFIC, "no engine is ready")
        window = merged(windows.values())
        if window.weight < LEAST_DRAFTS:
            return NoEvidence(Reason.NOT_ENOUGH_DRAFTS, "too few drafts")
        return window

    def closes(self, limits: WindowLimits, now: float) -> bool:
        """Whether the window ends now."""
        age = now - self.opened
        if age >= limits.most_seconds:
            return True
        if age < limits.least_seconds:
            return False
        window = self.window()
        return isinstance(window, Window) and window.weight >= limits.drafts

    def next(self, now: float) -> Gathering:
        """The window after this one, which begins where this one ended."""
        return Gathering(opened=now, bases={**self.bases, **self.latest})
