"""What is known of a drafter before anything was measured: by its kind alone, never by its target.

    T(K) / T(0) = a (1 + r K)      a: the price of switching speculation on, r: of each draft token

The constants were fitted to the measured AMD rows by `benchmarks.replay.priors`, which also fits
them without one target for the replay of that target. They only have to be about right: they
decide what is looked at first, and are gone after a few looks.
"""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.speculation import BLOCK_DRAFTERS


@dataclass(frozen=True, slots=True)
class Prior:
    """Means and standard deviations over drafters of one kind.

    price, price_error    of log a, so a = exp(price)
    slope, slope_error    of r
    own_error             of log T(K) about that line
    cut, cut_error        of log E(K) above what the first K positions of a longer proposal say
    decline               each position's conditional acceptance over that of the position before
    carried_error         of log E(K), for each position beyond the longest proposal seen
    """

    price: float
    price_error: float
    slope: float
    slope_error: float
    own_error: float
    cut: float
    cut_error: float
    decline: float
    carried_error: float


SEQUENTIAL = Prior(
    price=0.335,
    price_error=0.455,
    slope=0.152,
    slope_error=0.074,
    own_error=0.082,
    cut=0.019,
    cut_error=0.015,
    decline=0.955,
    carried_error=0.022,
)
"""Drafters that propose token by token: mtp, eagle, eagle3, draft models."""

BLOCK = Prior(
    price=0.685,
    price_error=0.469,
    slope=0.089,
    slope_error=0.042,
    own_error=0.162,
    cut=0.075,
    cut_error=0.080,
    decline=0.955,
    carried_error=0.048,
)
"""Drafters that propose a block at once: dflash, dspark."""


def prior_of(method: str) -> Prior:
    """The prior of a method's kind."""
    return BLOCK if method in BLOCK_DRAFTERS else SEQUENTIAL
