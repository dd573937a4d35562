"""Signs that the draft or the counters are broken, which no proposal length can mend.

Low acceptance alone is no fault: what speculation brings is decided by goodput. But hardly any
first token accepted, or none at all, is what corrupted or foreign draft weights give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from speculative_operator.api.conditions import Reason
from speculative_operator.api.speculation import Method
from speculative_operator.tuning.page import Phase
from speculative_operator.tuning.window import LEAST_DRAFTS, Window

WEAK = 0.10
"""No sound draft has fewer of its first tokens accepted."""

LEAST_PROBED = 20
"""First tokens from which recovery can be told."""

SILENT_WINDOWS = 2
"""Windows in a row without drafts that are told."""

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
    windows: int = 1

    @property
    def said(self) -> bool:
        """Whether it is told: silence for one window has harmless causes too, sums have none."""
        return self.reason is not Reason.NO_DRAFTS or self.windows >= SILENT_WINDOWS


def still_broken(before: Broken | None, now: Broken | None) -> Broken | None:
    """What is broken now, with the number of windows in a row."""
    if before is None or now is None or before.reason is not now.reason:
        return now
    return replace(now, windows=min(before.windows + 1, SILENT_WINDOWS))


def broken(window: Window, method: str) -> Broken | None:
    """Whether the counters contradict each other or drafts are missing under load."""
    for k in sorted({key.k for key in window.rows}):
        total = window.total(k)
        wrong = _contradiction(k, window)
        if wrong is not None:
            return Broken(
                Reason.COUNTERS_INCONSISTENT,
                f"At K={k} {wrong}, so nothing is concluded. "
                "Check that the plugin fits this vLLM version.",
            )
        if not k:
            continue
        silent = not total.drafts and method not in MATCHING_METHODS
        if silent and _decoded(k, window) >= LEAST_DRAFTS:
            return Broken(
                Reason.NO_DRAFTS,
                f"The engines decode at K={k} and make no drafts: speculation is silently off, as "
                "after sleep and wake or a new load of weights, or by a setting that vLLM drops it "
                "for. Look for a warning in the engine's log; a new start (delete the pod, or "
                "spec.tuning.replaceFaultyPods) mends the first.",
            )
    return None


def _decoded(k: int, window: Window) -> float:
    """Request-steps that had only to decode; tokens where the plugin does not count those."""
    total = window.total(k)
    return window.total(k, Phase.DECODE).requests if total.steps else total.generated


def _contradiction(k: int, window: Window) -> str | None:
    """Which identity the sums of one K break, in words.

    A step gives each request one token and its accepted drafts, fewer where a request ends or has
    prompt left; `generated` counts the timed steps only, so it can be less, never more. vLLM's own
    metrics, all of them phase `mixed`, count requests only where they have a draft.
    """
    total = window.total(k)
    accepted = [at.accepted for of, at in sorted(window.positions.items()) if of.k == k]
    if _above(total.accepted, sum(accepted)) or _above(sum(accepted), total.accepted):
        return "the accepted tokens by position do not add up to all accepted tokens"
    if _above(total.accepted, total.draft_tokens):
        return "more tokens are accepted than were drafted"
    if any(_above(after, before) for before, after in pairwise(accepted)):
        return "a later position is accepted more often than an earlier one"
    decoding = window.total(k, Phase.DECODE)
    if _above(decoding.generated, decoding.requests + decoding.accepted):
        return "more tokens are generated than requests and accepted drafts allow"
    return None


def _above(one: float, other: float) -> bool:
    """Whether a sum exceeds another by more than two ways of counting explain."""
    return one - other > UNEQUAL * max(one, other) + 2


def first_tokens(window: Window) -> tuple[float, float]:
    """How many first draft tokens there were, and the share p_1 that was accepted."""
    first = [at for of, at in window.positions.items() if of.at == 0]
    drafted = sum(at.drafted for at in first)
    return drafted, sum(at.accepted for at in first) / drafted if drafted else 0.0


def weak(window: Window, method: str) -> bool:
    """Whether a window shows acceptance that no sound draft has, by one standard error."""
    drafted, accepted = first_tokens(window)
    if method in MATCHING_METHODS or drafted < LEAST_DRAFTS:
        return False
    return accepted < WEAK - _error(drafted)


def recovered(window: Window) -> bool:
    """Whether the few drafts of one probe show a sound draft again, by two standard errors."""
    drafted, accepted = first_tokens(window)
    return drafted >= LEAST_PROBED and accepted > WEAK + 2 * _error(drafted)


def _error(drafted: float) -> float:
    """Standard error of p_1 at `WEAK`: a draft there must not be faulty and sound in turn."""
    return math.sqrt(WEAK * (1 - WEAK) / drafted)


def weakness(window: Window) -> tuple[Reason, str]:
    """What kind of weakness a window shows, and the likely cause in words."""
    if any(at.accepted for at in window.positions.values()):
        return Reason.WEAK_ACCEPTANCE, (
            "Fewer than one in ten first draft tokens is accepted. Check that the draft was "
            "trained for this target and its revision, and the attention backends of both."
        )
    return Reason.NO_ACCEPTANCE, (
        "No draft token at all is accepted: the draft's weights are not for this target, are "
        "corrupted or stale, or are of another method (EAGLE and EAGLE-3 are not "
        "interchangeable). Check speculation.draft.source; speculation.dev/refresh loads it anew."
    )
