"""What a surprising step time is: chance, a slow outlier, or a change.

Each has a density of its own over the surprise, and is as likely as that says (Bayes' rule).
"""

from __future__ import annotations

import math

from speculative_operator.tuning.cost import CHANGED, SLOW, SLOW_ERROR, SLOW_SHARE

QUIET = 400.0
"""Windows to the next change that K in force does not show, when nothing is known of changes."""


def outlier_chance(error: float, variance: float) -> float:
    """How likely a surprise is a slow outlier rather than what it seems."""
    slow, usual = _slow(error, variance), _usual(error, variance)
    return slow / (slow + usual) if usual else 1.0


def rather_changed(error: float, variance: float, windows: int) -> bool:
    """Whether a surprise is rather a change than all else, after so many windows that did not show
    that K. Of one that was timed just now, chance is the likelier cause of the same surprise."""
    rate = -math.expm1(-windows / QUIET)
    changed = rate * _density(error, variance + CHANGED**2)
    return changed > (1 - rate) * (_slow(error, variance) + _usual(error, variance))


def _slow(error: float, variance: float) -> float:
    return SLOW_SHARE * _density(error - SLOW, variance + SLOW_ERROR**2)


def _usual(error: float, variance: float) -> float:
    return (1 - SLOW_SHARE) * _density(error, variance)


def _density(error: float, variance: float) -> float:
    """A normal distribution's, but for the factor that all have."""
    return math.exp(-(error**2) / (2 * variance)) / math.sqrt(variance)
