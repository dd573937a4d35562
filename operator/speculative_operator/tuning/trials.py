"""Trials: which other K a bucket tries, in blocks how long, and how often."""

from __future__ import annotations

import math
from collections.abc import Mapping

from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import Option
from speculative_operator.tuning.schedule import Trial

SETTLING = 2
"""Steps of a block that are not timed."""

WANTED_STEPS = 60
"""Timed steps of each K that a look is to bring, over all replicas."""

SHORTEST_BLOCK, LONGEST_BLOCK = 8, 20
LEAST_ROUNDS, MOST_ROUNDS = 2, 40

MOST_ARMS = 6
"""K in one look; the others wait for the next."""


def arms_to_try(
    now: int, found: tuple[Option, ...], policy: Policy, *, routine: bool
) -> tuple[int, ...]:
    """The K of a bucket that a look plays, most telling first; () when nothing is open. All where
    nothing was measured yet.

    A `routine` look, one that was waited for, also plays K=0, since nothing else shows that
    speculation has come to cost more than it brings; from K=0, at least the most promising K.
    """
    if not any(option.measured for option in found):
        return tuple(k for k in policy.arms if k != now)[:MOST_ARMS]
    ranked = sorted(found, key=lambda option: (-option.gain, option.k))
    wanted = [option.k for option in ranked if option.open]
    if routine and now == 0 and not wanted:
        wanted = [ranked[0].k]
    if 0 in wanted or (routine and now != 0 and 0 in policy.arms):
        wanted = [0, *(k for k in wanted if k)]
    return tuple(wanted[:MOST_ARMS])


def trial(
    batch: tuple[int, int], arms: tuple[int, ...], policy: Policy, steps: float, replicas: int
) -> Trial:
    """Blocks so long that a round fits into a window of `steps` steps of one engine."""
    block = round(policy.trial_share * steps / len(arms))
    block = min(max(block, SHORTEST_BLOCK), LONGEST_BLOCK)
    rounds = math.ceil(WANTED_STEPS / ((block - SETTLING) * max(replicas, 1)))
    return Trial(
        batch=batch,
        arms=arms,
        share=policy.trial_share,
        block=block,
        rounds=min(max(rounds, LEAST_ROUNDS), MOST_ROUNDS),
    )


def opening(policy: Policy, now: int) -> tuple[Trial, ...]:
    """Trials of a revision of which nothing is known: every K, at every batch size."""
    arms = arms_to_try(now, (), policy, routine=False)
    return (trial((1, policy.max_num_seqs), arms, policy, 0.0, 1),) if arms else ()


def trials(
    arms: Mapping[int, tuple[int, ...]], policy: Policy, *, steps: float, replicas: int
) -> tuple[Trial, ...]:
    """A look at `arms` by bucket. Neighbours with the same arms share a trial."""
    found: list[Trial] = []
    for name in sorted(arms):
        if not arms[name]:
            continue
        low, high = batch_range(name)
        high = min(high, policy.max_num_seqs)
        last = found[-1] if found else None
        if last is not None and last.arms == arms[name] and last.batch[1] + 1 == low:
            low = last.batch[0]
            found.pop()
        found.append(trial((low, high), arms[name], policy, steps, replicas))
    return tuple(found)
