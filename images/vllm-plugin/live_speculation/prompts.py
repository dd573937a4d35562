"""Counts prompts that repeat one of the last few: acceptance on such traffic is of no real one.

Touched only in steps that bring a new request, for some microseconds each.
"""

from __future__ import annotations

from collections.abc import Sequence

REMEMBERED = 64
"""Different prompts that a new one is compared with."""

HEAD, TAIL = 32, 64
"""Tokens that a prompt is told by, with its length: a system prompt is the same in all of them, so
the end counts too."""


class Prompts:
    """`seen` prompts, of which `repeated` equal one before. One thread counts, any thread reads."""

    def __init__(self) -> None:
        self.seen = self.repeated = 0
        self._recent: dict[int, object] = {}

    def see(self, request: object, tokens: Sequence[int] | None) -> None:
        """A request begins, or goes on after it was put aside, which counts once."""
        if not tokens:
            return
        key = hash((len(tokens), *tokens[:HEAD], *tokens[-TAIL:]))
        recent = self._recent
        before = recent.pop(key, None)
        recent[key] = request
        if before == request:
            return
        self.seen += 1
        if before is not None:
            self.repeated += 1
        elif len(recent) > REMEMBERED:
            del recent[next(iter(recent))]
