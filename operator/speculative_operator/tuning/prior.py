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
    price=0.33,
    price_error=0.45,
    slope=0.15,
    slope_error=0.07,
    own_error=0.04,
    cut=0.012,
    cut_error=0.008,
    decline=0.98,
    carried_error=0.01,
)
"""Drafters that propose token by token: mtp, eagle, eagle3, draft models."""

BLOCK = Prior(
    price=0.68,
    price_error=0.45,
    slope=0.09,
    slope_error=0.04,
    own_error=0.065,
    cut=0.055,
    cut_error=0.045,
    decline=0.96,
    carried_error=0.02,
)
"""Drafters that propose a block at once: dflash, dspark."""


def prior_of(method: str) -> Prior:
    """The prior of a method's kind."""
    return BLOCK if method in BLOCK_DRAFTERS else SEQUENTIAL
