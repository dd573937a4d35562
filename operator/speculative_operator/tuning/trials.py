"""Trials: the K that a bucket tries next, in blocks how long, and how often."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import Trial

SHORTEST_BLOCK, LONGEST_BLOCK = 8, 20
"""Steps; the first two of a block are not timed."""

SHORT = 0.4
"""Part of the trial share that is enough to tell a time from one that is twice as long."""

USUAL_STEPS = 200.0
"""Steps of a window before one was seen."""

MOST_ROUNDS = 100


def trial(
    batch: tuple[int, int], arms: tuple[int, ...], policy: Policy, steps: float, part: float = 1.0
) -> Trial:
    """Blocks for about one window of `steps` steps of one engine, in a part of the trial share."""
    share = policy.trial_share * part
    wanted = share * (steps or USUAL_STEPS) / len(arms)
    block = min(max(round(wanted), SHORTEST_BLOCK), LONGEST_BLOCK)
    return Trial(
        batch=batch,
        arms=arms,
        share=share,
        block=block,
        rounds=min(max(math.ceil(wanted / block), 1), MOST_ROUNDS),
    )


def trials(
    arms: Mapping[int, tuple[int, ...]],
    policy: Policy,
    *,
    steps: float,
    short: Collection[int] = (),
) -> tuple[Trial, ...]:
    """A look at other K by bucket, in `short` buckets one of fewer steps. Neighbours that try the
    same share a trial."""
    found: list[Trial] = []
    for name in sorted(name for name in arms if arms[name]):
        low, high = batch_range(name)
        high = min(high, policy.max_num_seqs)
        asked = trial((low, high), arms[name], policy, steps, SHORT if name in short else 1.0)
        last = found[-1] if found else None
        if last is not None and last.batch[1] + 1 == low:
            both = replace(asked, batch=(last.batch[0], high))
            if both == replace(last, batch=both.batch):
                found.pop()
                asked = both
        found.append(asked)
    return tuple(found)
