"""Revisions on trial: where another one serves, a new one has to prove itself before requests reach
its pods. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from speculative_operator.api.names import LABEL_REVISION
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.controller.observed import Observed
from speculative_operator.controller.pods import Pod
from speculative_operator.controller.revision_verdict import RevisionVerdict, Standing


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


def serving_labels(seen: Observed, current: str) -> Iterator[tuple[Pod, str]]:
    """Pods on trial leave the Service before they are ready, and so do those of a bad revision that
    is not the `current` one; all others belong to it."""
    for pod in seen.pods:
        standing = seen.standing(pod.revision)
        bad = standing is Standing.BAD and pod.revision != current
        off = bad or standing is Standing.TRIAL
        wanted = "false" if off else "true"
        if pod.alive and pod.serving_label != wanted and not (off and pod.ready):
            yield pod, wanted


def found(
    seen: Observed, answering: Collection[str], now: str
) -> Iterator[tuple[str, RevisionVerdict]]:
    """Verdicts on the revisions on trial: good is one of which a pod is ready and lists the served
    names."""
    passed = {
        pod.revision
        for pod in seen.pods
        if pod.alive and pod.ready and pod.incarnation in answering
    }
    for key in sorted(passed):
        if seen.standing(key) is Standing.TRIAL:
            yield key, RevisionVerdict(Standing.GOOD, now)
