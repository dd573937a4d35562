"""Bringing the cluster to what is desired: records first, then what pods need, then the pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from speculative_operator.api.names import (
    ANNOTATION_DELETION_COST,
    ANNOTATION_IN_PLACE,
    ANNOTATION_REFERENCE,
    LABEL_SERVING,
)
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.errors import Refusal

FIRST_TO_GO: Final = "-1000"
"""Deletion cost of a pod whose engine has hung. It stays where the engine goes on after all."""


@dataclass(frozen=True)
class Acted:
    """What came of a pass.

    changed  whether anything was sent
    refusal  what the user must resolve before the rest can be done
    kept     why a pod that was to be replaced stays, by its UID
    """

    changed: bool
    refusal: Refusal | None = None
    kept: Mapping[str, str] = field(default_factory=dict)


async def act(desired: Desired, seen: Observed, children: Children) -> Acted:
    """Sends what differs, nothing else. Raises ClusterFault.

    A pod starts with what it mounts, so Deployments come after their ConfigMaps; and a name that is
    taken is found before any pod is started.
    """
    changed = bool(desired.first_to_go)
    for pod in desired.first_to_go:
        await _mark(pod, {"annotations": {ANNOTATION_DELETION_COST: FIRST_TO_GO}}, children)
    for step in ((*desired.new, *desired.before_pods), desired.pods):
        acted = await keep(step, children)
        changed |= acted.changed
        if acted.refusal is not None:
            return Acted(changed, acted.refusal)
    for pod, serving in desired.labels:
        await _mark(pod, {"labels": {LABEL_SERVING: serving}}, children)
    for key, verdict in desired.found:
        change = {**verdict.annotations(), ANNOTATION_REFERENCE: None}
        await _annotate(seen, key, change, children)
    if desired.reference is not None:
        key, reference = desired.reference
        await _annotate(seen, key, {ANNOTATION_REFERENCE: reference.to_json()}, children)
    for key, words in desired.in_place:
        await _annotate(seen, key, {ANNOTATION_IN_PLACE: words}, children)
    kept = await _end(desired.replaced, children)
    for copy in desired.leftovers:
        await children.remove(copy)
    recorded = desired.found or desired.reference or desired.in_place
    more = (desired.labels, recorded, len(desired.replaced) > len(kept), desired.leftovers)
    return Acted(changed or any(more), kept=kept)


async def _end(pods: Iterable[Pod], children: Children) -> Mapping[str, str]:
    """Evicts them; why one stays, by its UID."""
    kept = {}
    for pod in pods:
        why = await children.end(pod.namespace, pod.name, pod.uid)
        if why is not None:
            kept[pod.uid] = f"Pod {pod.name} is not replaced: {why}"
    return kept


async def _mark(pod: Pod, marks: Mapping[str, Mapping[str, str]], children: Children) -> None:
    """Labels or annotations of a pod, the one of that UID."""
    identity = {"metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}}
    await children.patch("Pod", identity, {"metadata": dict(marks)})


async def _annotate(
    seen: Observed, key: str, annotations: Mapping[str, str | None], children: Children
) -> None:
    """The record of a revision; None takes an annotation away."""
    change = {"metadata": {"annotations": dict(annotations)}}
    await children.patch("ControllerRevision", seen.revisions[key].manifest, change)


async def keep(manifests: Iterable[Manifest], children: Children) -> Acted:
    """All at once; the first refusal counts, but a fault of the cluster goes before it."""
    results = await asyncio.gather(
        *(children.keep(manifest) for manifest in manifests), return_exceptions=True
    )
    refusals = [r for r in results if isinstance(r, Refusal)]
    for result in results:
        if isinstance(result, BaseException) and result not in refusals:
            raise result
    return Acted(any(result is True for result in results), next(iter(refusals), None))
