"""Revisions on trial: where another one serves, a new one has to prove itself before requests reach
its pods. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from speculative_operator.api.names import ANNOTATION_VERDICT, LABEL_REVISION
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.controller.observed import TRIAL, Observed
from speculative_operator.controller.pods import Pod


def recordable(new: Manifest, served: Collection[str]) -> Manifest:
    """On trial where another revision serves and this one never has."""
    key = new["metadata"]["labels"][LABEL_REVISION]
    return _on_trial(new) if served and key not in served else new


def _on_trial(new: Manifest) -> Manifest:
    """It must prove itself before requests reach it, since another revision serves."""
    metadata = new["metadata"]
    annotations = {ANNOTATION_VERDICT: TRIAL, **metadata.get("annotations", {})}
    return {**new, "metadata": {**metadata, "annotations": annotations}}


def serving_labels(seen: Observed) -> Iterator[tuple[Pod, str]]:
    """Pods on trial leave the Service before they are ready; all others belong to it."""
    for pod in seen.pods:
        on_trial = seen.verdict(pod.revision) == TRIAL
        wanted = "false" if on_trial else "true"
        if pod.alive and pod.serving_label != wanted and not (on_trial and pod.ready):
            yield pod, wanted


def proven(seen: Observed, answering: Collection[str]) -> str | None:
    """A revision on trial of which a pod is ready and lists the served names."""
    passed = (
        pod.revision
        for pod in seen.pods
        if pod.alive
        and pod.ready
        and pod.incarnation in answering
        and seen.verdict(pod.revision) == TRIAL
    )
    return next(passed, None)
