"""What the tuner says: decisions, evidence and condition values. Figures live in fields, so that a
message changes only with what it means."""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """The value of one condition, without times."""

    status: ConditionStatus
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the last window measured; None where nothing is known.

    acceptance         accepted of all draft tokens, 0 to 1
    acceptance_length  E: tokens a request gets of a step, 1 to K+1
    positions          p_i of the K in force, from the first position
    goodput            generated tokens a second and replica, while decoding
    speedup            goodput over that of K=0 on the same engines
    seconds            how long it took
    """

    measured_at: float
    drafts: int
    acceptance: float | None = None
    acceptance_length: float | None = None
    positions: tuple[float, ...] = ()
    goodput: float | None = None
    speedup: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """One K for another at the batch sizes low to high, both in; `advised` ones are only said.

    `gain` is the expected change of goodput as a share, None where nothing measured is the reason
    (a bound that the user moved, a faulty draft). `goodput` is what was measured before, tokens a
    second and replica, and `outcome` what it was two windows later, in words. `at` is Unix time,
    `window` the number of windows with evidence until then.
    """

    at: float
    window: int
    low: int
    high: int
    before: int
    after: int
    reason: EventReason
    message: str
    advised: bool = False
    gain: float | None = None
    goodput: float | None = None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that an Event tells the user once."""

    reason: EventReason
    message: str
    warning: bool = False
