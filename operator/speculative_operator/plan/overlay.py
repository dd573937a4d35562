"""`spec.runtime.podTemplate`: what a user may lay over the pod template, and how it is laid.

Maps are merged, lists of named things by name (mounts by path), other lists replaced. CEL cannot
look inside of it, so what the operator itself needs is protected here. What has a field of its own
in the spec is written there: one thing has one home.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from speculative_operator.api.names import (
    LABEL_APP_COMPONENT,
    LABEL_APP_INSTANCE,
    LABEL_APP_NAME,
    LABEL_MANAGED_BY,
    PORT_HTTP,
    PORT_SPECULATION,
)
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.environment import PLUGIN_PATH, SCHEDULE_FOLDER

WHERE = "spec.runtime.podTemplate"
ENGINE = "engine"
"""The engine's container."""
PLUGIN = "live-speculation"
"""The init container that copies the plugin, and the volume that it fills."""
SCHEDULE = "schedule"
HOME_VOLUME = "home"
TEMPORARY = "tmp"
SHARED_MEMORY = "shm"
WEIGHTS = "weights"
"""Volumes of claims are called `weights-0`, `weights-1`."""

OWN_PREFIX = "speculation.dev/"
OWN_LABELS = frozenset(
    {LABEL_APP_NAME, LABEL_APP_INSTANCE, LABEL_APP_COMPONENT, LABEL_MANAGED_BY, "pod-template-hash"}
)
OWN_VOLUMES = frozenset(
    {PLUGIN, SCHEDULE, HOME_VOLUME, TEMPORARY, SHARED_MEMORY, f"{WEIGHTS}-0", f"{WEIGHTS}-1"}
)
OWN_PATHS = (PLUGIN_PATH, SCHEDULE_FOLDER)

POD_FIELDS: Mapping[str, str] = {
    "nodeSelector": "Set spec.accelerator.nodeSelector instead.",
    "nodeName": "It goes past the scheduler, which counts GPUs. Set "
    "spec.accelerator.nodeSelector instead.",
    "tolerations": "Set spec.accelerator.tolerations instead.",
    "imagePullSecrets": "Set spec.runtime.imagePullSecrets instead.",
    "priorityClassName": "Set spec.runtime.priorityClassName instead.",
    "serviceAccountName": "Set spec.runtime.serviceAccountName instead.",
    "serviceAccount": "Set spec.runtime.serviceAccountName instead.",
    "terminationGracePeriodSeconds": "Set spec.runtime.drainSeconds instead.",
    "restartPolicy": "vLLM exits 0 when its engine dies, so it stays Always. Leave it out.",
    "hostPID": "An engine never sees the host's processes. Leave it out.",
    "hostIPC": "Shared memory is mounted already. Leave it out.",
    "hostNetwork": "Engines on one node would fight for port 8000. Leave it out.",
    "enableServiceLinks": "A Service called vllm would set VLLM_PORT. Leave it out.",
}
"""What may not be overlaid in the pod's spec, and what to do instead."""

ENGINE_FIELDS: Mapping[str, str] = {
    "command": "Set spec.runtime.args instead.",
    "args": "Set spec.runtime.args instead.",
    "image": "Set spec.runtime.image instead.",
    "imagePullPolicy": "Set spec.runtime.imagePullPolicy instead.",
    "env": "Set spec.runtime.env instead.",
    "envFrom": "List the variables in spec.runtime.env, with valueFrom where needed.",
    "resources": "Set spec.runtime.resources and spec.accelerator.count instead.",
    "securityContext": "Set spec.runtime.securityContext instead.",
}
"""What may not be overlaid in the engine's container."""

MERGE_KEYS: Mapping[str, str] = {"volumeMounts": "mountPath", "volumeDevices": "devicePath"}
"""What tells the entries of a list apart; `name` where it is not listed here."""


def check(overlay: Mapping[str, Any] | None) -> None:
    """Raises ModelInvalid where the overlay touches what it may not."""
    if overlay is None:
        return
    _refuse_null(WHERE, overlay)
    _refuse_unknown(WHERE, overlay, {"metadata", "spec"})
    metadata = _map(f"{WHERE}.metadata", overlay.get("metadata", {}))
    _refuse_unknown(f"{WHERE}.metadata", metadata, {"labels", "annotations"})
    for kind in ("labels", "annotations"):
        for key in _map(f"{WHERE}.metadata.{kind}", metadata.get(kind, {})):
            if key.startswith(OWN_PREFIX) or key in OWN_LABELS:
                _refuse(f"{WHERE}.metadata.{kind}", f"{key} is the operator's. Leave it out.")
    _check_pod(f"{WHERE}.spec", _map(f"{WHERE}.spec", overlay.get("spec", {})))


def laid_over(
    base: Mapping[str, Any], overlay: Mapping[str, Any], *, where: str = WHERE
) -> dict[str, Any]:
    """`base` with `overlay` laid over it, as a new value. Raises ModelInvalid on a wrong shape."""
    merged = {
        name: _over(value, overlay[name], f"{where}.{name}", MERGE_KEYS.get(name, "name"))
        if name in overlay
        else value
        for name, value in base.items()
    }
    return {**merged, **{name: value for name, value in overlay.items() if name not in base}}


def _over(base: object, overlay: object, where: str, key: str) -> object:
    if isinstance(base, Mapping):
        return laid_over(base, _map(where, overlay), where=where)
    if isinstance(base, Sequence) and not isinstance(base, str):
        return _list_over(base, _list(where, overlay), where, key)
    return overlay


def _list_over(base: Sequence[Any], over: Sequence[Any], where: str, key: str) -> list[Any]:
    if not all(isinstance(entry, Mapping) and key in entry for entry in (*base, *over)):
        return list(over)
    wanted = {entry[key]: entry for entry in over}
    known = {entry[key] for entry in base}
    merged = [
        laid_over(entry, wanted.get(entry[key], {}), where=f"{where}[{entry[key]}]")
        for entry in base
    ]
    return merged + [entry for entry in over if entry[key] not in known]


def _check_pod(where: str, pod: Mapping[str, Any]) -> None:
    _refuse_listed(where, pod, POD_FIELDS)
    affinity = _map(f"{where}.affinity", pod.get("affinity", {}))
    if "nodeAffinity" in affinity:
        _refuse(
            f"{where}.affinity.nodeAffinity",
            "The operator chooses nodes by GPU. Set spec.accelerator.products and "
            "spec.accelerator.nodeSelector instead.",
        )
    for volume, place in _named(f"{where}.volumes", pod.get("volumes", [])):
        if volume["name"] in OWN_VOLUMES:
            _refuse(place, "The operator has a volume of this name. Choose another name.")
    for kind in ("containers", "initContainers"):
        for container, place in _named(f"{where}.{kind}", pod.get(kind, [])):
            _check_container(place, container)
            if kind == "initContainers" and container["name"] == PLUGIN:
                _refuse(place, "The operator has a container of this name. Choose another name.")
            if container["name"] == ENGINE:
                _check_engine(place, container)


def _check_container(where: str, container: Mapping[str, Any]) -> None:
    security = _map(f"{where}.securityContext", container.get("securityContext", {}))
    if security.get("privileged"):
        _refuse(
            f"{where}.securityContext.privileged",
            "A privileged container sees every GPU of the node. Leave it out.",
        )
    resources = _map(f"{where}.resources", container.get("resources", {}))
    for kind in ("requests", "limits"):
        for resource in _map(f"{where}.resources.{kind}", resources.get(kind, {})):
            if resource.startswith("amd.com/"):
                _refuse(
                    f"{where}.resources.{kind}",
                    f"{resource}: only the engine has GPUs. Set spec.accelerator.count instead.",
                )


def _check_engine(where: str, engine: Mapping[str, Any]) -> None:
    _refuse_listed(where, engine, ENGINE_FIELDS)
    for port, place in _named(f"{where}.ports", engine.get("ports", [])):
        if port["name"] in {PORT_HTTP, PORT_SPECULATION}:
            _refuse(place, "The operator has a port of this name. Choose another name.")
    for mount, place in _named(f"{where}.volumeMounts", engine.get("volumeMounts", [])):
        path = str(mount.get("mountPath", "")).rstrip("/")
        if any(path == own or path.startswith(f"{own}/") for own in OWN_PATHS):
            _refuse(place, f"{path} holds the live speculation plugin. Choose another path.")


def _refuse_listed(where: str, value: Mapping[str, Any], advice: Mapping[str, str]) -> None:
    for name in advice:
        if name in value:
            _refuse(f"{where}.{name}", advice[name])


def _refuse_unknown(where: str, value: Mapping[str, Any], known: set[str]) -> None:
    for name in value:
        if name not in known:
            _refuse(f"{where}.{name}", f"Only {' and '.join(sorted(known))} can be overlaid.")


def _refuse_null(where: str, value: object) -> None:
    if value is None:
        _refuse(where, "null takes nothing away here. Leave the field out.")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _refuse_null(f"{where}.{name}", inner)
    if isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            _refuse_null(f"{where}[{number}]", inner)


def _named(where: str, value: object) -> Iterator[tuple[Mapping[str, Any], str]]:
    for number, entry in enumerate(_list(where, value)):
        named = _map(f"{where}[{number}]", entry)
        if not isinstance(named.get("name"), str):
            _refuse(f"{where}[{number}]", "It has no name. Give it one: entries merge by name.")
        yield named, f"{where}[{named['name']}]"


def _map(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(where, f"It is a map in a pod, not {value!r}.")
    return value


def _list(where: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        _refuse(where, f"It is a list in a pod, not {value!r}.")
    return value


def _refuse(where: str, why: str) -> NoReturn:
    raise ModelInvalid(f"{where}: {why}")
