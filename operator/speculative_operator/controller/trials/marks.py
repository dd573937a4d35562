"""What marks a revision on trial: the verdict on its record, and the label of its pods. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from speculative_operator.api.names import LABEL_REVISION
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing


def recordable(new: Manifest, good: Collection[str], now: str) -> Manifest:
    """On trial where another revision is good and this one is not known to be."""
    key = new["metadata"]["labels"][LABEL_REVISION]
    return _on_trial(new, now) if good and key not in good else new


def _on_trial(new: Manifest, now: str) -> Manifest:
    """What was found out before stands: the record is only made again."""
    metadata = new["metadata"]
    trial = RevisionVerdict(Standing.TRIAL, now).annotations()
    annotations = {**trial, **metadata.get("annotations", {})}
    return {**new, "metadata": {**metadata, "annotations": annotations}}


def serving_labels(seen: Observed, current: str, *, serves: bool) -> Iterator[tuple[Pod, str]]:
    """Pods on trial leave the Service before they are ready, unless the trial of the `current`
    revision has come so far that it `serves`; those of a bad revision that is not the current one
    leave it too. All others belong to it."""
    for pod in seen.pods:
        standing = seen.standing(pod.revision)
        bad = standing is Standing.BAD and pod.revision != current
        on_trial = standing is Standing.TRIAL and not (serves and pod.revision == current)
        off = bad or on_trial
        wanted = "false" if off else "true"
        if pod.alive and pod.serving_label != wanted and not (off and pod.ready):
            yield pod, wanted


def beside(states: Mapping[str, int], good: Collection[str]) -> str | None:
    """The good revision that most replicas are asked for of, the newest of equals; None where none
    runs. `states` are replicas by key, oldest first."""
    running = [key for key, replicas in states.items() if replicas and key in good]
    return max(reversed(running), key=lambda key: states[key], default=None)
