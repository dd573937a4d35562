"""What is said of replicas that are out of line: which number, how far, why, and what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from speculative_operator.tuning.likeness import Distance, accepted

MOST_NAMES = 4
"""Pods that a text names."""

KEPT_OUT = "Its numbers do not count meanwhile"


def of_acceptance(name: str, at: Distance) -> str:
    """Accepted tokens a draft of one pod and of the others."""
    cause = (
        "Its prompts are unlike the others', or the others' drafts are stale. "
        f"{KEPT_OUT}; if its prompts are no others, delete one of the other pods to compare."
        if at.off > 0
        else "Its draft is stale or damaged, or its prompts are unlike the others'. "
        f"{KEPT_OUT}; deleting the pod loads the draft anew."
    )
    return (
        f"Pod {name} accepts {accepted(at.own):.2f} tokens a draft at K={at.same.k}, the others "
        f"{accepted(at.other):.2f}. {cause}"
    )


def of_step_time(name: str, at: Distance) -> str:
    """Step times of one pod and of the others."""
    k, cell = at.same
    batch = f"batch up to {cell}" if cell else "the largest batches"
    cause = (
        "Its GPU is slow (hot, shared or damaged), or its contexts are longer. "
        f"{KEPT_OUT}; deleting the pod gives it another GPU where there is one."
        if at.off > 0
        else "The others' GPUs are slow, or its contexts are shorter. "
        f"{KEPT_OUT}; compare the nodes of the other pods."
    )
    return (
        f"Pod {name} takes {_milliseconds(at.own)} a step at K={k} and {batch}, the others "
        f"{_milliseconds(at.other)} ({math.expm1(at.own - at.other):+.0%}). {cause}"
    )


def _milliseconds(log_us: float) -> str:
    return f"{math.exp(log_us) / 1000:.1f} ms"


def of_counters(name: str, fault: str) -> str:
    """Counters that are broken in one pod and not in all."""
    return f"Pod {name} alone: {fault} {KEPT_OUT}; deleting the pod starts its engine anew."


def of_split(names: Sequence[str], sign: str) -> str:
    """Pods of which one half shows another number than the other."""
    more = len(names) - MOST_NAMES
    listed = ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    return (
        f"Pods {listed} disagree in {sign} and nothing known tells which is sound; the numbers of "
        "all count. Delete one pod: if its successor agrees with the others, it was the odd one."
    )
