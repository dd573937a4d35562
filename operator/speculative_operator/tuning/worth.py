"""What a look at another K is worth, and what it costs: both in windows of goodput.

A look moves what is expected of the K that is looked at, and through their covariance of others.
Its worth is the knowledge gradient (Frazier, Powell and Dayanik 2009): how much more the best K is
expected to bring once the look's result is known, for as long as it will matter. Its cost is what
the tried K is expected to bring less, over the share of a window that it takes.

    worth = horizon · ( E[max_k (m_k + b_k Z)] - max_k m_k ),   Z standard normal

m are the expected log goodputs now, b_k how far those move for one standard deviation of the
look's result. What has become different unnoticed since the last look is not in that, see `looks`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.belief import Estimate
from speculative_operator.tuning.cost import CHANGED, Cost
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import bonus, contended

HORIZON = 25.0
"""Windows for which what is found out now will matter."""

WINDOW_ERROR = 0.03
"""Standard error of a whole window's log step time, before its noise is learned."""

LENGTH_ERROR = 0.05
"""Standard error of log E of a K in one look."""

UNSEEN = Estimate(0.5, 0.3**2)
"""log E of any K before the first draft."""

HANDLING = 0.01
"""What any look costs besides: the schedule is written, and steps next to a change are lost."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a look at K is worth and costs, in windows of goodput; `gap` is how far its expected log
    goodput is above what it takes to be chosen."""

    k: int
    gap: float
    worth: float
    cost: float

    @property
    def net(self) -> float:
        return self.worth - self.cost


def prospects(
    now: int, cost: Cost, lengths: Lengths, policy: Policy, share: float = 1.0
) -> tuple[Prospect, ...]:
    """A look at each other K that the policy allows, in a bucket with a share of all traffic: so
    much of the windows to come is its."""
    arms = policy.arms
    joint = cost.joint(arms)
    for i, k in enumerate(arms):
        if k in cost.held:
            joint[i][i] += CHANGED**2
    expected = [lengths.get(k, UNSEEN) for k in arms]
    steps = [cost.of(k).mean for k in arms]
    means = [
        length.mean - step + bonus(k, now, policy)
        for k, length, step in zip(arms, expected, steps, strict=True)
    ]
    noise = cost.noise * WINDOW_ERROR**2 * (1 + 1 / policy.trial_share) / 2
    played = arms.index(now) if now in arms else 0
    contest = contended(means, steps, played, policy)
    found = []
    for at, k in enumerate(arms):
        if k == now:
            continue
        scale = math.sqrt(joint[at][at] + noise)
        moves = [value / scale for value in joint[at]]
        length = expected[at].variance
        if length:
            moves[at] = math.hypot(moves[at], length / math.sqrt(length + LENGTH_ERROR**2))
        gap = means[at] - means[played]
        variance = joint[at][at] + joint[played][played] - 2 * joint[at][played] + length
        loss = 1.0 - math.exp(min(gap + variance / 2, 0.0))
        worth = expected_rise(contest, moves)
        paid = policy.trial_share * loss + HANDLING
        found.append(Prospect(k, contest[at] - contest[played], HORIZON * share * worth, paid))
    return tuple(found)


FAR = 5.0
"""Standard deviations from which a line cannot matter."""


def expected_rise(means: Sequence[float], moves: Sequence[float]) -> float:
    """E[max_k (means_k + moves_k · Z)] - max means for a standard normal Z: the lines' upper
    envelope, and the normal loss function at each of its corners."""
    top = max(range(len(means)), key=means.__getitem__)
    lines = sorted(
        (move, mean)
        for mean, move in zip(means, moves, strict=True)
        if means[top] - mean <= FAR * abs(move - moves[top])
    )
    if len(lines) < 2:
        return 0.0
    envelope: list[tuple[float, float]] = []
    corners: list[float] = []
    for slope, height in lines:
        while envelope:
            last_slope, last_height = envelope[-1]
            if slope - last_slope < 1e-12:
                corner = -math.inf
            else:
                corner = (last_height - height) / (slope - last_slope)
            if corner > (corners[-1] if corners else -math.inf):
                corners.append(corner)
                break
            envelope.pop()
            if corners:
                corners.pop()
        envelope.append((slope, height))
    return sum(
        (after[0] - before[0]) * normal_loss(-abs(corner))
        for (before, after), corner in zip(pairwise(envelope), corners, strict=True)
    )


def normal_loss(z: float) -> float:
    """E[max(Z + z, 0)]."""
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return density + z * math.erfc(-z / math.sqrt(2)) / 2
