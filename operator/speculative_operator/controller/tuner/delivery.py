"""One model's schedule on its way to the engines: what is to be written, and whether it arrived. No
I/O here.
"""

from __future__ import annotations

from collections.abc import Sequence

from speculative_operator.api.conditions import EventReason
from speculative_operator.tuning.application import Application
from speculative_operator.tuning.decide import Decision
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.schedule import ScheduleFile, Table, schedule_hash
from speculative_operator.tuning.verdict import Notice


class Delivery:
    """The last schedule that was written, and the last one that was in force."""

    def __init__(self, now: float) -> None:
        self.application = Application("", now)
        self._written: ScheduleFile | None = None
        self._played: Table | None = None
        self._told_late = ""
        self._lag = 0.0

    def to_write(
        self, wanted: ScheduleFile, current: str | None, pages: Sequence[Page], now: float
    ) -> tuple[str, int] | None:
        """Text and attempt if a schedule is to be handed on now. `current` is what is written.

        A text that plays the same stays as it is, whatever lease it carries, unless an engine has
        read one of a later term and so refuses it. It was handed on before the pages were made.
        """
        written = ScheduleFile.read(current) if current else None
        same = written is not None and written.plays_as(wanted) and not _outdated(written, pages)
        text = current if same and current is not None else wanted.to_json()
        self._written = written if same else wanted
        if schedule_hash(text) != self.application.digest:
            since = now if text != current else now - _oldest(pages)
            self.application = Application(schedule_hash(text), since).seen(pages, now)
        if text == current and not self.application.due(now - self._lag):
            return None
        return text, self.application.attempts + 1

    def attempted(self) -> None:
        """The schedule was handed on."""
        self.application = self.application.attempted()

    def watch(self, pages: Sequence[Page], now: float) -> tuple[Notice, ...]:
        """Whether it has arrived; if it should have and has not, that is told once."""
        self._lag = _oldest(pages)
        application = self.application = self.application.seen(pages, now)
        if application.in_force and self._written is not None:
            self._played = self._written.table
        if not self.late(now) or self._told_late == application.digest:
            return ()
        self._told_late = application.digest
        message = f"Schedule {application.digest} is not reported by every engine."
        return (Notice(EventReason.SCHEDULE_NOT_APPLIED, message, warning=True),)

    def late(self, now: float) -> bool:
        """Whether it should have arrived by the time of which all pages tell."""
        return self.application.late(now - self._lag)

    def under_way(self, decision: Decision) -> bool:
        """Whether the engines last played another table than the one that is decided."""
        return self._played not in (None, decision.table)


def _oldest(pages: Sequence[Page]) -> float:
    """The age of the oldest page, in seconds."""
    return max((page.age for page in pages), default=0.0)


def _outdated(written: ScheduleFile, pages: Sequence[Page]) -> bool:
    return written.lease is not None and any(
        page.lease is not None
        and page.lease[0] == written.lease[0]
        and page.lease[1] > written.lease[1]
        for page in pages
    )
