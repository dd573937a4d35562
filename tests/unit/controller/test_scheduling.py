"""What the scheduler's words mean, as schedulers of 1.28 to 1.37 write them."""

from __future__ import annotations

import pytest

from speculative_operator.api.conditions import Reason
from speculative_operator.controller.seen.scheduling import no_node_because

FULL, NONE, OTHER = Reason.WAITING_FOR_GPUS, Reason.NO_NODE_FITS, Reason.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            (
                "0/3 nodes are available: 1 Insufficient amd.com/gpu, 2 node(s) didn't match Pod's "
                "node affinity/selector. preemption: 0/3 nodes are available: 1 No preemption "
                "victims found for incoming pod, 2 Preemption is not helpful for scheduling."
            ),
            FULL,
        ),
        ("0/1 nodes are available: 1 Insufficient amd.com/cpx_nps4, 1 Insufficient cpu.", FULL),
        (
            (
                "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. "
                "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
            ),
            NONE,
        ),
        (
            (
                "0/4 nodes are available: 1 node(s) had untolerated taint "
                "{node-role.kubernetes.io/control-plane: }, 3 node(s) didn't match Pod's node "
                "affinity/selector. preemption: 0/4 nodes are available: 4 Preemption is not "
                "helpful for scheduling."
            ),
            NONE,
        ),
        (
            (
                "0/3 nodes are available: 1 node(s) had untolerated taint(s) "
                "{node-role.kubernetes.io/control-plane: }, 2 Insufficient amd.com/gpu."
            ),
            FULL,
        ),
        (
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint "
                "{node-role.kubernetes.io/control-plane: }. preemption: not helpful."
            ),
            OTHER,
        ),
        ("no nodes available to schedule pods", NONE),
        (
            (
                "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 "
                "node(s) had untolerated taint {amd-gpu-unhealthy: }. preemption: not helpful."
            ),
            OTHER,
        ),
        ("0/1 nodes are available: 1 Insufficient memory. preemption: no.", OTHER),
        ("pod has unbound immediate PersistentVolumeClaims", OTHER),
        ("", OTHER),
    ],
)
def test_a_full_cluster_is_told_from_one_without_such_gpus(words: str, reason: Reason) -> None:
    """For the first one waits; the second never ends by itself."""
    assert no_node_because(words) is reason
