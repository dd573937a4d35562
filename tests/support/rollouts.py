"""A rollout on the node as a test watches it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.api import Manifest, condition, is_true, until
from tests.support.served import Served


@dataclass
class Watched:
    """What was seen of the pods at every look."""

    most_pods: int = 0
    least_ready: int = 99


def roll(model: Served, change: Manifest) -> Watched:
    """Changes the spec and looks at the pods until the rollout has ended."""
    model.change(change)
    generation = model.resource()["metadata"]["generation"]
    seen = Watched()

    def ended() -> bool:
        pods = model.api.all("Pod", model.namespace, selector(model))
        seen.most_pods = max(seen.most_pods, len(pods))
        seen.least_ready = min(seen.least_ready, sum(map(is_ready, pods)))
        found = model.resource()
        return (
            found["status"]["observedGeneration"] == generation
            and is_true(found, "Ready")
            and condition(found, "Progressing").get("reason") == "Settled"
        )

    until("the rollout has ended", ended, timeout=180)
    return seen


def selector(model: Served) -> str:
    return f"speculation.dev/model-uid={model.resource()['metadata']['uid']}"


def key(pod: Manifest) -> str:
    return str(pod["metadata"]["labels"]["speculation.dev/revision"])


def is_ready(pod: Manifest) -> bool:
    return any(
        found["type"] == "Ready" and found["status"] == "True"
        for found in pod["status"].get("conditions", [])
    )
