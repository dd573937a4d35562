"""Policies and windows for tests of the tuner; each test names only what it is about."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.page import (
    Counters,
    Counts,
    Page,
    Phase,
    Position,
    Proposed,
    RowKey,
    cell_of,
)
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window

NOISY = (0.61, 0.38, 0.21, 0.14)
"""p_1 … p_4 of the noisy draft on the recorded CPU runs; with STEP_MS, K=2 and K=1 are best."""

STEP_MS = {0: 9.6, 1: 12.5, 2: 15.0, 3: 19.5, 4: 23.0}
"""Step times on the CPU, from the interleaved trial in the facts."""

GOOD = (0.97, 0.95, 0.93, 0.91)
"""A draft with which K=4 is best at these step times."""

DEAD = (0.0, 0.0, 0.0, 0.0)
"""A draft that has nothing to do with its target."""


def a_policy(**changes: Any) -> Policy:
    """Auto over K = 0 to 4, started at 4, up to 64 requests."""
    policy = Policy(
        mode=TuningMode.AUTO,
        method="draft_model",
        choices=(1, 2, 3, 4),
        initial=4,
        max_num_seqs=64,
        fixed=((1, 64, 3),),
        prior=SEQUENTIAL,
    )
    return replace(policy, **changes)


@dataclass(frozen=True)
class Traffic:
    """What an engine does at one batch size: p_i by position, milliseconds a step by K."""

    acceptance: Sequence[float] = NOISY
    step_ms: Mapping[int, float] | None = None
    batch: int = 4
    steps: int = 400
    spread: float = 0.1

    def row(self, k: int, steps: int, chance: random.Random | None = None) -> Counts:
        """`steps` steps at one K; without a chance, exactly the expected sums."""
        mean = math.log((self.step_ms or STEP_MS)[k] * 1000)
        if chance is not None and steps:
            mean += chance.gauss(0, self.spread / math.sqrt(steps))
        requests = float(self.batch * steps)
        accepted = requests * sum(self.acceptance[:k])
        return Counts(
            steps=steps,
            seconds=steps * math.exp(mean) / 1e6,
            log_us=steps * mean,
            log_us_sq=steps * (mean**2 + self.spread**2),
            drafts=requests if k else 0,
            draft_tokens=requests * k,
            accepted=accepted,
            generated=requests + accepted,
            requests=requests,
        )

    def window(self, steps: Mapping[int, int], chance: random.Random | None = None) -> Window:
        """One window with so many steps at each K."""
        rows, positions = {}, {}
        for k, count in steps.items():
            if count:
                rows[RowKey(k, cell_of(self.batch), Phase.DECODE)] = self.row(k, count, chance)
                for at in range(k):
                    drafted = float(self.batch * count)
                    positions[Position(k, at)] = Proposed(drafted, drafted * self.acceptance[at])
        return Window(seconds=5.0, rows=rows, positions=positions)

    def played(self, decision: Decision, chance: random.Random | None = None) -> Window:
        """The window that engines give which play a decision; its trials are over at its end."""
        length = length_at(decision.table, self.batch)
        steps = {length: self.steps}
        look = decision.state.look
        for trial in () if look is None or look.over else look.trials:
            if trial.batch[0] <= self.batch <= trial.batch[1]:
                tried = round(self.steps * trial.share / len(trial.arms))
                steps |= {k: tried for k in trial.arms if k != length}
                steps[length] = self.steps - tried * (len(steps) - 1)
        return replace(self.window(steps, chance), trials_over=True)


def first(policy: Policy, state: State | None = None) -> Decision:
    """The decision before any window."""
    return decide(None, state or State(), policy, Occasion(0.0))


def course(
    policy: Policy,
    traffic: Sequence[Traffic],
    start: Decision | None = None,
    chance: random.Random | None = None,
) -> list[Decision]:
    """The decisions after each window of some traffic, played by engines that obey."""
    decision = start or first(policy)
    decisions = []
    for number, now in enumerate(traffic, start=1):
        window = now.played(decision, chance)
        decision = decide(window, decision.state, policy, Occasion(5.0 * number))
        decisions.append(decision)
    return decisions


def lengths(decisions: Sequence[Decision], batch: int = 4) -> list[int]:
    """K in force at one batch size after each decision."""
    return [length_at(decision.table, batch) for decision in decisions]


def looking(decision: Decision) -> tuple[int, ...]:
    """The K that a decision has tried at batch 4; () while no look goes on."""
    look = decision.state.look
    if look is None or look.over:
        return ()
    return next((t.arms for t in look.trials if t.batch[0] <= 4 <= t.batch[1]), ())


def a_page(window: Window | None = None, **changes: Any) -> Page:
    """The page of a tunable engine that has done so much since its start."""
    window = window or Window(seconds=0.0)
    page = Page(
        plugin="0.1.0",
        vllm="0.33.0",
        method="draft_model",
        capacity=4,
        tunable=True,
        reason="",
        hash_read=None,
        hash_in_force=None,
        error="",
        lease=None,
        running=4,
        waiting=0,
        idle_seconds=0.0,
        trials=(),
        counters=Counters(pid=7, started=100.0, rows=window.rows, positions=window.positions),
    )
    return replace(page, **changes)
