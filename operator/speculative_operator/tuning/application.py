"""Whether a schedule is in force in the engines, and when to nudge the kubelet again.

The kubelet hands a changed ConfigMap on when it sees a change of the pod. Its two watches race, and
an annotation that does not change is no event, so the attempt that is part of the annotation counts
up until the engines report the hash.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from speculative_operator.tuning.page import Page

WAITS = (2.0, 4.0, 8.0)
"""Seconds from one attempt to the next."""

ATTEMPTS_AT = tuple(accumulate(WAITS))
"""Seconds after the first attempt at which the others are due."""

GIVEN_UP_AFTER = ATTEMPTS_AT[-1] + WAITS[-1]
"""Seconds from which only the kubelet's own sync, every minute or so, is waited for."""

IDLE_SECONDS = 1.0
"""An engine without a step for so long is idle: it takes a schedule up with its next step."""


@dataclass(frozen=True, slots=True)
class Application:
    """One schedule on its way: since when, and how many times it was handed on."""

    digest: str
    since: float
    attempts: int = 0
    in_force: bool = False

    def due(self, now: float) -> bool:
        """Whether it should be handed on (again) now."""
        if self.in_force or self.attempts > len(WAITS):
            return False
        return not self.attempts or now - self.since >= ATTEMPTS_AT[self.attempts - 1]

    def attempted(self) -> Application:
        return replace(self, attempts=self.attempts + 1)

    def seen(self, pages: Iterable[Page], now: float) -> Application:
        """After reading the ready engines. Those that cannot be tuned do not count; without one
        that can, nothing is known. A page from before it was handed on says nothing of it."""
        tunable = [page for page in pages if page.tunable]
        if any(now - page.age < self.since for page in tunable):
            return self
        return replace(self, in_force=all(taken_up(page, self.digest) for page in tunable))

    def late(self, now: float) -> bool:
        """Whether it should have been in force by now."""
        return not self.in_force and now - self.since > GIVEN_UP_AFTER


def taken_up(page: Page, digest: str) -> bool:
    """Whether an engine plays a schedule, or will with its next step."""
    if page.hash_in_force == digest:
        return True
    idle = not page.running and page.idle_seconds >= IDLE_SECONDS
    return idle and page.hash_read == digest
