"""All that the tuner knows of one revision: one value, made anew by each decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.acceptance import Acceptance, Lengths
from speculative_operator.tuning.aging import Aging
from speculative_operator.tuning.cost import Cost
from speculative_operator.tuning.faults import Broken
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.repeats import Repeats
from speculative_operator.tuning.schedule import Table, Trial
from speculative_operator.tuning.standings import Replicas
from speculative_operator.tuning.variant import Restart
from speculative_operator.tuning.verdict import Change, Evidence

MOST_CHANGES = 10
"""Decisions that are kept for the status."""


class Timed(NamedTuple):
    """When steps at one K were last timed: the window's number, and its Unix second."""

    window: int
    at: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """One batch bucket that traffic has come to. Windows are counted by `State.windows`.

    length    K in force
    cost      log c(K)
    traffic   fading request-steps
    seen      the last window with evidence
    changed   the window of the last change of K
    timed     by K, when its steps were last timed
    advised   the K that mode Recommend has told of
    """

    length: int
    cost: Cost
    traffic: float
    seen: int
    changed: int
    timed: Mapping[int, Timed] = field(default_factory=dict)
    advised: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Trials that were asked for: `opened` is the window number at that time. Once `over` they
    stay in the schedule, where they have ended by themselves, until something else changes."""

    opened: int
    trials: tuple[Trial, ...]
    over: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Acceptance that no sound draft has, since Unix time `since`."""

    since: float
    message: str
    reason: Reason = Reason.NO_ACCEPTANCE


@dataclass(frozen=True, slots=True)
class Replaced:
    """A pod that was to be replaced at Unix time `at`, since its engine was at fault."""

    uid: str
    reason: Reason
    at: float


@dataclass(frozen=True, slots=True)
class State:
    """Everything that `decide` remembers.

    table      in force; () before the first decision
    windows    windows with evidence so far
    look       the last trials that were asked for since the table changed, or None
    looks      how many looks there were; numbers the schedule file
    shifted    the last window that showed a change of traffic
    next_look  the window after which the next look is due at the latest, if nothing changes
    asked      the last value of the look annotation that was obeyed
    settled    nothing was left to find out that is worth its cost, since K last changed
    weak       windows with drafts in a row with almost no acceptance
    broken     what is wrong with the counters of the last window, or None
    replicas   who of them was out of line, and what is usual
    aging      acceptance by the age of engines
    repeats    whether the prompts are all the same
    replaced   the last pod that was replaced for each reason
    """

    table: Table = ()
    windows: int = 0
    buckets: Mapping[int, Bucket] = field(default_factory=dict)
    acceptance: Acceptance = field(default_factory=Acceptance)
    look: Look | None = None
    looks: int = 0
    shifted: int = 0
    next_look: int = 0
    asked: str | None = None
    settled: bool = False
    weak: int = 0
    broken: Broken | None = None
    fault: Fault | None = None
    evidence: Evidence | None = None
    changes: tuple[Change, ...] = ()
    replicas: Replicas = field(default_factory=Replicas)
    aging: Aging = field(default_factory=Aging)
    repeats: Repeats = field(default_factory=Repeats)
    restart: Restart = field(default_factory=Restart)
    replaced: tuple[Replaced, ...] = ()

    @property
    def away(self) -> bool:
        """Whether engines without speculation are wanted."""
        return self.restart.away

    def timed_anywhere(self, k: int) -> bool:
        """Whether steps at K were timed at some batch size; else only the prior tells of it."""
        return any(k in bucket.timed for bucket in self.buckets.values())

    @property
    def busiest(self) -> int | None:
        """The bucket with most traffic."""
        return max(self.buckets, key=lambda name: self.buckets[name].traffic, default=None)

    def lengths(self, policy: Policy) -> dict[int, Lengths]:
        """Of K=0 and all choices, by bucket."""
        return self.acceptance.lengths_at(self.buckets, (0, *policy.choices), policy.prior)
