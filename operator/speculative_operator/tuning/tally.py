"""What one process has counted of a model's tuning: decisions, switches, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from speculative_operator.api.conditions import EventReason
from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.buckets import bucket_of
from speculative_operator.tuning.decide import Decision
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import options
from speculative_operator.tuning.state import Bucket, State
from speculative_operator.tuning.window import Window

DECIDED = (
    EventReason.PROPOSAL_LENGTH_CHANGED,
    EventReason.FELL_BACK,
    EventReason.SPECULATION_RESUMED,
    EventReason.FELL_BACK_BY_RESTART,
    EventReason.RECOMMENDED,
)
"""What a decision may be; each is counted from 0 on, so that the first one is a growth, too."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Tokens that were not generated, as far as today's estimates know: in steps at the K in force
    while another one was better (`waiting`), and in trials of K that are worse (`exploring`)."""

    waiting: float = 0.0
    exploring: float = 0.0


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums since the process began to tune the model.

    decisions  by reason, advice of mode Recommend included
    switches   changes of K that were played
    """

    decisions: Mapping[EventReason, int] = field(default_factory=lambda: dict.fromkeys(DECIDED, 0))
    switches: int = 0
    regret: Regret = Regret()

    def after(
        self, before: State, decision: Decision, window: Window | None, policy: Policy
    ) -> Tally:
        """With one more decision. `before` is the state that it began with."""
        decisions = dict(self.decisions)
        for change in decision.changes:
            decisions[change.reason] += 1
        lost = regret(window, before, decision.state, policy) if window is not None else Regret()
        return replace(
            self,
            decisions=decisions,
            switches=self.switches + sum(not change.advised for change in decision.changes),
            regret=Regret(
                self.regret.waiting + lost.waiting, self.regret.exploring + lost.exploring
            ),
        )


def regret(window: Window, before: State, after: State, policy: Policy) -> Regret:
    """What one window lost against the best K that was measured, by the estimates of `after`; what
    the objective gives up for shorter steps is no loss.

    `before` has the K that was in force. Steps with prompt tokens are left out: they are not
    compared by any decision either.
    """
    waiting = exploring = 0.0
    lengths = after.lengths(policy)
    worths = {
        name: _worths(bucket, lengths[name], policy) for name, bucket in after.buckets.items()
    }
    for key, counts in window.rows.items():
        name = bucket_of(key.cell)
        worth = worths.get(name, {})
        if key.phase is not Phase.DECODE or key.k not in worth:
            continue
        least = max(worth.values()) + math.log1p(-policy.throughput_loss)
        lost = counts.generated * math.expm1(max(least - worth[key.k], 0.0))
        known = before.buckets.get(name)
        if known is None or known.length == key.k:
            waiting += lost
        else:
            exploring += lost
    return Regret(waiting, exploring)


def _worths(bucket: Bucket, lengths: Lengths, policy: Policy) -> dict[int, float]:
    """log of goodput against the K in force, by measured K."""
    found = options(bucket.length, bucket.cost, lengths, policy)
    return {bucket.length: 0.0} | {
        option.k: option.plain for option in found if option.measured and not option.doubted
    }
