"""The product's own policy as a player: `decide` on windows with the plugin's counters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from benchmarks.replay.baselines import START, at_most
from benchmarks.replay.engine import DRAFTS, SHARE, STEPS, Measuring, Play, Seen
from benchmarks.replay.episodes import Episode
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.page import EDGES, Counts, Phase, Position, Proposed, RowKey
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window

SPREAD = 0.2
"""Standard deviation of the logarithm of one step's time, as the counters show it. The noise of
the windows is not told: it has to be learned."""

SECONDS = 5.0
LARGEST_BATCH = 256


def policy_of(episode: Episode, measuring: Measuring, prior: Prior) -> Policy:
    """Auto, started at the longest K up to 7. No minimum gain: the score is plain goodput."""
    choices = tuple(k for k in episode.arms if k)
    initial = at_most(episode.arms, START)
    return Policy(
        mode=TuningMode.AUTO,
        method=episode.method,
        choices=choices,
        initial=initial,
        max_num_seqs=LARGEST_BATCH,
        fixed=((1, LARGEST_BATCH, initial),),
        minimum_gain=0.0,
        trial_share=SHARE[measuring],
        prior=prior,
    )


@dataclass
class Product:
    """State in, decision out, as the operator does it."""

    policy: Policy
    broken: frozenset[int] = frozenset()
    number: int = 0
    decision: Decision = field(init=False)

    def __post_init__(self) -> None:
        self.decision = decide(None, State(), self.policy, Occasion(0.0))

    def play(self, batch: int) -> Play:
        """What an engine makes of the schedule at a batch size."""
        length = length_at(self.decision.table, batch)
        look = self.decision.state.look
        if look is not None and not look.over:
            for trial in look.trials:
                if trial.batch[0] <= batch <= trial.batch[1]:
                    return Play(length, trial.arms, trial.share, trial.block)
        return Play(length)

    def see(self, seen: Seen | None) -> None:
        window = None if seen is None else window_of(seen)
        if window is not None and self.number in self.broken:
            window = contradictory(window)
        self.number += 1
        at = Occasion(SECONDS * self.number)
        self.decision = decide(window, self.decision.state, self.policy, at)


def window_of(seen: Seen) -> Window:
    """The counters' differences. All trials are over at the window's end."""
    cell = next((edge for edge in EDGES if seen.batch <= edge), None)
    rows, positions = {}, {}
    for k, look in seen.looks.items():
        log_us = look.log_ms + math.log(1000.0)
        accepted = float(sum(look.accepted))
        rows[RowKey(k, cell, Phase.DECODE)] = Counts(
            steps=look.steps,
            seconds=look.steps * math.exp(log_us) / 1e6,
            log_us=look.steps * log_us,
            log_us_sq=look.steps * (log_us**2 + SPREAD**2),
            drafts=look.drafts if k else 0,
            draft_tokens=look.drafts * k,
            accepted=accepted,
            generated=(look.drafts + accepted) * look.steps / (STEPS * look.drafts / DRAFTS),
            requests=look.drafts,
        )
        for at, count in enumerate(look.accepted):
            positions[Position(k, at)] = Proposed(look.drafts, count)
    return Window(seconds=SECONDS, rows=rows, positions=positions, trials_over=True)


def contradictory(window: Window) -> Window:
    """The same with accepted tokens that do not add up by position, or with no drafts at K=0."""
    rows = {
        key: counts._replace(accepted=counts.accepted * 2 + 100)
        for key, counts in window.rows.items()
    }
    return replace(window, rows=rows)
