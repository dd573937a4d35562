"""The PodDisruptionBudget of a model: how many of its pods a drain of nodes may take at once."""

from __future__ import annotations

from speculative_operator.api.exposure import RolloutSpec
from speculative_operator.plan.names import Owner, model_names
from speculative_operator.resources.metadata import Manifest, metadata, serving_pods_of


def disruption_budget(owner: Owner, rollout: RolloutSpec, replicas: int) -> Manifest | None:
    """None where it is not wanted, and for one replica: it would keep its node from being drained
    for ever, or allow what is allowed anyway.

    It counts the pods that the Service reaches: one on trial off it makes up for none of them.
    `minAvailable`, since `maxUnavailable` goes by what the Deployments of those pods ask for: in a
    rollout that may be fewer than the replicas. A pod that is not ready may always be taken: it
    serves nobody.
    """
    if not rollout.disruption_budget or replicas <= 1:
        return None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, model_names(owner).disruption_budget, "engine"),
        "spec": {
            "minAvailable": max(1, replicas - rollout.max_unavailable),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": dict(serving_pods_of(owner))},
        },
    }
