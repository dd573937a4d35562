"""What a decision is made on, besides the evidence of the engines that speculate."""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.tuning.window import Window


@dataclass(frozen=True, slots=True)
class Running:
    """What runs at the moment: ready engines of each variant, all `pods` that run or start, the
    seconds that the quickest took from its start to Ready, and the window of those without
    speculation, if one has closed."""

    speculative: int = 1
    autoregressive: int = 0
    pods: int = 1
    startup: float | None = None
    window: Window | None = None


SPECULATIVE_ONLY = Running()


@dataclass(frozen=True, slots=True)
class Occasion:
    """`now` is Unix time, `asked` the value of the annotation that asks for a look."""

    now: float
    asked: str | None = None
    running: Running = SPECULATIVE_ONLY
