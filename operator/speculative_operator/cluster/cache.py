"""Watched copies of the models and of what belongs to them.

A copy holds only what the operator reads, as JSON: a parsed object takes five times the memory, and
an object is parsed only when its model is reconciled. Copies come from the watch and from the
answers to our own writes, so that a write is never repeated because its echo is late.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from speculative_operator.api.base import KIND
from speculative_operator.api.names import (
    ANNOTATION_DELETION_COST,
    LABEL_APP_COMPONENT,
    LABEL_MODEL_UID,
)
from speculative_operator.cluster.manifests import (
    Manifest,
    Reference,
    controller_of,
    reference_of,
)

OWN_PREFIX: Final = "speculation.dev/"
MEMORY_COMPONENT: Final = "memory"
REMEMBERED_DELETIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Copy:
    """An object as last seen, without what nobody here reads.

    `content` tells two states of what somebody has written apart; status is not in it.
    """

    reference: Reference
    uid: str
    version: int
    model_uid: str | None
    body: bytes
    content: int

    def manifest(self) -> Manifest:
        """A fresh object with each call."""
        parsed: Manifest = json.loads(self.body)
        return parsed


TELLING: Final = frozenset({("PodScheduled", "False"), ("PodScheduled", "True"), ("Ready", "True")})
"""Conditions of a pod that say something: whether it waits for a node, since when it is on one, and
since when it is ready. Not to be ready is what is assumed of it anyway."""

LOST: Final = ("Ready", "False")
"""Where an engine has ended, since when it is not ready tells whether it ever was."""

RESTORED_AS_IT_WAS: Final = frozenset({"ControllerRevision", "ConfigMap"})
"""Kinds that cannot be rendered again from the spec: a record of the past, the tuner's schedule."""


class Cache:
    """The last seen copy of each watched object, findable by name and by the model's UID.

    The last copy of an object that somebody deleted is kept as long as its model lives where the
    object can only be restored from it.

    `listed` is set by each object that comes from a listing. kopf lists a kind anew where its watch
    cannot go on, and never tells of what was deleted meanwhile.
    """

    def __init__(self) -> None:
        self.listed = asyncio.Event()
        self._copies: dict[Reference, Copy] = {}
        self._children: dict[str, set[Reference]] = {}
        self._models: dict[str, Reference] = {}
        self._lost: dict[str, dict[Reference, Copy]] = {}
        self._agreed: dict[Reference, tuple[int, int]] = {}
        self._deleted: deque[str] = deque(maxlen=REMEMBERED_DELETIONS)

    def put(self, manifest: Mapping[str, Any]) -> bool:
        """Takes a newer copy in; False when it says nothing new that is read here.

        Versions of one kind are comparable, also between objects of one name: a late event of a
        deleted one must not replace the copy of its successor.
        """
        reference, metadata = reference_of(manifest), manifest["metadata"]
        before = self._copies.get(reference)
        if before is not None and before.version >= int(metadata["resourceVersion"]):
            return False
        if self.is_deleted(metadata["uid"]):
            return False  # the answer to a write came after the watch told of the deletion
        copy = trimmed_copy(manifest)
        if before is not None:
            self._unlink(before)
        self._link(copy)
        return before is None or before.uid != copy.uid or before.body != copy.body

    def remove(self, reference: Reference, uid: str) -> bool:
        """Somebody deleted the object of this UID; False when its name is another one's by now."""
        copy = self._copies.get(reference)
        if not self.drop(reference, uid) or copy is None:
            return False
        if reference.kind == KIND:
            self._lost.pop(uid, None)
        elif reference.kind in RESTORED_AS_IT_WAS and copy.model_uid in self._models:
            self._lost.setdefault(copy.model_uid, {})[reference] = copy
        return True

    def drop(self, reference: Reference, uid: str) -> bool:
        """We deleted the object of this UID, and it is not to come back."""
        self._deleted.append(uid)
        self._agreed.pop(reference, None)
        copy = self._copies.get(reference)
        if copy is None or copy.uid != uid:
            return False
        self._unlink(copy)
        return True

    def is_deleted(self, uid: str) -> bool:
        """Whether the object was deleted lately, perhaps by us: finalizers may still hold it."""
        return uid in self._deleted

    def get(self, reference: Reference) -> Copy | None:
        """The copy of one object."""
        return self._copies.get(reference)

    def agree(self, reference: Reference, rendered: int) -> None:
        """The object as it stands says all of a rendered manifest, given by a hash."""
        if (copy := self._copies.get(reference)) is not None:
            self._agreed[reference] = (rendered, copy.content)

    def agrees(self, reference: Reference, rendered: int) -> bool:
        """Whether that was found before of the same manifest and the same state of the object."""
        copy = self._copies.get(reference)
        return copy is not None and self._agreed.get(reference) == (rendered, copy.content)

    def rendered_so(self, reference: Reference, rendered: int) -> bool:
        """Whether the object was found to say the same manifest before, in whatever state."""
        return self._agreed.get(reference, (None,))[0] == rendered

    def children(self, model_uid: str) -> Iterator[Copy]:
        """All objects that carry the model's UID."""
        return (self._copies[reference] for reference in self._children.get(model_uid, ()))

    def lost(self, model_uid: str) -> Iterator[Copy]:
        """Last copies of the model's objects that somebody deleted and that are not back yet."""
        return iter(tuple(self._lost.get(model_uid, {}).values()))

    def forget_lost(self) -> None:
        """What was deleted so far stays so: whoever led until now may have done it."""
        self._lost.clear()

    def model(self, uid: str) -> Reference | None:
        """Where the model of this UID is."""
        return self._models.get(uid)

    def models(self) -> Iterable[Reference]:
        """All models."""
        return tuple(self._models.values())

    def of_kind(self, kind: str) -> tuple[Copy, ...]:
        """All copies of one kind."""
        return tuple(copy for copy in self._copies.values() if copy.reference.kind == kind)

    def _link(self, copy: Copy) -> None:
        self._copies[copy.reference] = copy
        if copy.reference.kind == KIND:
            self._models[copy.uid] = copy.reference
        elif copy.model_uid is not None:
            self._children.setdefault(copy.model_uid, set()).add(copy.reference)
            self._lost.get(copy.model_uid, {}).pop(copy.reference, None)

    def _unlink(self, copy: Copy) -> None:
        del self._copies[copy.reference]
        if copy.reference.kind == KIND:
            del self._models[copy.uid]
        elif copy.model_uid is not None:
            siblings = self._children[copy.model_uid]
            siblings.discard(copy.reference)
            if not siblings:
                del self._children[copy.model_uid]


def model_uid_of(manifest: Mapping[str, Any]) -> str | None:
    """The UID of the model that an object belongs to: by its owner, a pod by its label."""
    owner = controller_of(manifest)
    if owner is not None and owner.get("kind") == KIND:
        return str(owner["uid"])
    if manifest["kind"] == "Pod":
        labels: Mapping[str, str] = manifest["metadata"].get("labels") or {}
        return labels.get(LABEL_MODEL_UID)
    return None


def trimmed_copy(manifest: Mapping[str, Any]) -> Copy:
    """What is kept of an object."""
    metadata = manifest["metadata"]
    trim = TRIMS.get(manifest["kind"], _without_status)
    trimmed = trim(manifest)
    status = trimmed.pop("status", None)
    written = _compact(trimmed)
    return Copy(
        reference=reference_of(manifest),
        uid=metadata["uid"],
        version=int(metadata["resourceVersion"]),
        model_uid=model_uid_of(manifest),
        body=(
            written if status is None else f'{written[:-1]},"status":{_compact(status)}}}'
        ).encode(),
        content=hash(written),
    )


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _trimmed_metadata(metadata: Mapping[str, Any]) -> Manifest:
    dropped = ("managedFields", "resourceVersion", "generation", "selfLink")
    return {key: value for key, value in metadata.items() if key not in dropped}


def _without_status(manifest: Mapping[str, Any]) -> Manifest:
    kept = {key: value for key, value in manifest.items() if key not in ("status", "metadata")}
    return {**kept, "metadata": _trimmed_metadata(manifest["metadata"])}


def _model(manifest: Mapping[str, Any]) -> Manifest:
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations") or {}
    return {
        "spec": manifest.get("spec", {}),
        "status": manifest.get("status", {}),
        "metadata": {
            **{
                key: metadata[key]
                for key in ("name", "namespace", "uid", "generation", "deletionTimestamp")
                if key in metadata
            },
            "annotations": {
                key: value for key, value in annotations.items() if key.startswith(OWN_PREFIX)
            },
        },
    }


def _deployment(manifest: Mapping[str, Any]) -> Manifest:
    """Its counts are left out: pods are counted themselves."""
    failures = [
        {key: condition[key] for key in ("message", "lastTransitionTime") if key in condition}
        for condition in (manifest.get("status") or {}).get("conditions") or ()
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True"
    ]
    return {**_without_status(manifest), "status": {"failures": failures}}


def _pod(manifest: Mapping[str, Any]) -> Manifest:
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    spec = manifest.get("spec") or {}
    return {
        "metadata": {
            **{
                key: metadata[key]
                for key in ("name", "namespace", "uid", "deletionTimestamp", "creationTimestamp")
                if key in metadata
            },
            **{
                section: {
                    key: value
                    for key, value in (metadata.get(section) or {}).items()
                    if key.startswith(OWN_PREFIX) or key == ANNOTATION_DELETION_COST
                }
                for section in ("labels", "annotations")
            },
        },
        "spec": {
            key: spec[key] for key in ("nodeName", "priority", "preemptionPolicy") if key in spec
        },
        "status": {
            **{
                key: status[key]
                for key in ("phase", "podIP", "reason", "message", "startTime")
                if key in status
            },
            "conditions": [
                {
                    key: condition[key]
                    for key in ("type", "status", "reason", "message", "lastTransitionTime")
                    if key in condition
                }
                for condition in status.get("conditions") or ()
                if (said := (condition["type"], condition["status"])) in TELLING
                or (said == LOST and _has_ended(status))
            ],
            "initContainerStatuses": _containers(status, "initContainerStatuses"),
            "containerStatuses": _containers(status, "containerStatuses"),
        },
    }


def _has_ended(status: Mapping[str, Any]) -> bool:
    """Whether a container besides the init containers did, which is told anyway."""
    return any(
        container.get("restartCount") or (container.get("state") or {}).get("terminated")
        for container in status.get("containerStatuses") or ()
    )


def _containers(status: Mapping[str, Any], section: str) -> list[Manifest]:
    kept = ("name", "ready", "restartCount", "state", "lastState")
    return [
        {
            **{key: container[key] for key in kept if key in container},
            **({"unhealthyDevices": devices} if (devices := _unhealthy(container)) else {}),
        }
        for container in status.get(section) or ()
    ]


def _unhealthy(container: Mapping[str, Any]) -> list[str]:
    """The devices of a container that their plugin calls so, by resource and ID."""
    return [
        f"{resource['name']} {device['resourceID']}"
        for resource in container.get("allocatedResourcesStatus") or ()
        for device in resource.get("resources") or ()
        if device.get("health") == "Unhealthy"
    ]


def _config_map(manifest: Mapping[str, Any]) -> Manifest:
    """The tuner's memory is up to 512 KiB and nobody else reads it: only whether there is any."""
    trimmed = _without_status(manifest)
    if manifest["metadata"].get("labels", {}).get(LABEL_APP_COMPONENT) != MEMORY_COMPONENT:
        return trimmed
    stored = bool(trimmed.pop("data", None)) | bool(trimmed.pop("binaryData", None))
    return {**trimmed, "stored": stored}


TRIMS: Final = {
    KIND: _model,
    "Deployment": _deployment,
    "Pod": _pod,
    "ConfigMap": _config_map,
}
