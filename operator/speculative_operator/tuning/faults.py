"""Signs that the draft or the counters are broken, which no proposal length can mend.

Low acceptance alone is no fault: what speculation brings is decided by goodput. But hardly any
first token accepted, or none at all, is what corrupted or foreign draft weights give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from speculative_operator.api.conditions import Reason
from speculative_operator.api.speculation import Method
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.window import LEAST_DRAFTS, Window

WEAK = 0.10
"""No sound draft has fewer of its first tokens accepted."""

LEAST_PROBED = 20
"""First tokens from which recovery can be told."""

UNEQUAL = 0.02
"""Sums of the same tokens may differ by so much."""

MATCHING_METHODS = frozenset({Method.NGRAM, Method.SUFFIX})
"""They propose what followed a match: silence is no fault, and neither are bad guesses, since there
are no weights that could be corrupted."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Counters from which nothing may be learned."""

    reason: Reason
    message: str


def broken(window: Window, method: str) -> Broken | None:
    """Whether the counters contradict each other or drafts are missing under load."""
    for k in sorted({key.k for key in window.rows if key.k}):
        total = window.total(k)
        by_position = sum(at.accepted for of, at in window.positions.items() if of.k == k)
        if abs(total.accepted - by_position) > UNEQUAL * max(total.accepted, by_position) + 2:
            return Broken(
                Reason.COUNTERS_INCONSISTENT,
                f"At K={k} the accepted tokens by position do not add up to all accepted tokens, "
                "so nothing is concluded. Check that the plugin fits this vLLM version.",
            )
        silent = not total.drafts and method not in MATCHING_METHODS
        if silent and window.total(k, Phase.DECODE).requests >= LEAST_DRAFTS:
            return Broken(
                Reason.NO_DRAFTS,
                f"The engines decode at K={k} and make no drafts: speculation is silently off. "
                "Look for a warning about speculative decoding in the engine's log.",
            )
    return None


def first_tokens(window: Window) -> tuple[float, float]:
    """How many first draft tokens there were, and the share p_1 that was accepted."""
    first = [at for of, at in window.positions.items() if of.at == 0]
    drafted = sum(at.drafted for at in first)
    return drafted, sum(at.accepted for at in first) / drafted if drafted else 0.0


def weak(window: Window, method: str) -> bool:
    """Whether a window shows acceptance that no sound draft has."""
    drafted, accepted = first_tokens(window)
    return method not in MATCHING_METHODS and drafted >= LEAST_DRAFTS and accepted < WEAK


def recovered(window: Window) -> bool:
    """Whether the few drafts of a probe show a sound draft again, by one standard error."""
    drafted, accepted = first_tokens(window)
    return drafted >= LEAST_PROBED and accepted > WEAK + math.sqrt(WEAK * (1 - WEAK) / drafted)


def weak_message(window: Window) -> str:
    """The likely cause, in words."""
    if any(at.accepted for at in window.positions.values()):
        return (
            "Fewer than one in ten first draft tokens is accepted. Check that the draft was "
            "trained for this target and its revision, and the attention backends of both."
        )
    return (
        "No draft token at all is accepted: the draft's weights are not for this target, are "
        "corrupted, or are of another method (EAGLE and EAGLE-3 are not interchangeable)."
    )
