"""What the scheduler's words mean: `0/3 nodes are available: 1 Insufficient amd.com/gpu, 2 …`."""

from __future__ import annotations

import re
from typing import Final

from speculative_operator.api.conditions import Reason

SHORT_OF: Final = re.compile(r"Insufficient amd\.com/\w+")
OTHER_LABELS: Final = "didn't match Pod's node affinity/selector"
NO_NODES: Final = "no nodes available to schedule pods"
CONTROL_PLANE: Final = re.compile(
    r"untolerated taint\S* \{node-role\.kubernetes\.io/(control-plane|master)\b"
)
"""Taints are looked at before labels, so these nodes are never said to have other ones."""


def no_node_because(words: str) -> Reason:
    """Too few GPUs free, no such GPUs at all, or something else that the words tell.

    One node that is only short of GPUs is enough to wait for; if all have other labels, nothing
    that comes free can help. Nodes of the control plane are no place for engines.
    """
    reasons = [each for each in _reasons(words) if not CONTROL_PLANE.search(each)]
    if any(SHORT_OF.search(reason) for reason in reasons):
        return Reason.WAITING_FOR_GPUS
    if words.startswith(NO_NODES) or (reasons and all(OTHER_LABELS in each for each in reasons)):
        return Reason.NO_NODE_FITS
    return Reason.UNSCHEDULABLE


def _reasons(words: str) -> list[str]:
    """What is told of each group of nodes, without what follows on preemption."""
    _, _, told = words.partition("nodes are available: ")
    return [reason for reason in told.split(". ")[0].split(", ") if reason]
