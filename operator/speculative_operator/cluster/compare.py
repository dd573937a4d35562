"""Whether a live object already says all that we render.

The API server adds defaults, drops empty values and rewrites quantities, and other people own
fields and list entries of their own. So the question is not "equal?" but "is everything rendered
there?". What we do not render is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from speculative_operator.api.quantities import amount
from speculative_operator.cluster.manifests import Manifest

ENTRY_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "hostAliases": ("ip",),
    "ownerReferences": ("uid",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""Lists that the API server merges by key, so that others may have entries beside ours."""

PORT_KEYS: Final = ("containerPort", "port")
"""A port's number, in a container and in a Service. Its protocol is TCP if none is written."""

QUANTITIES: Final = frozenset({"limits", "requests", "sizeLimit"})


def first_difference(rendered: Manifest, live: Manifest) -> str | None:
    """The path of the first rendered value that the live object lacks or has otherwise, or None."""
    found = _in_mapping(rendered, live, amounts=False)
    return None if found is None else ".".join(found) or "the object"


Path = tuple[str, ...]


def _in_value(rendered: Any, live: Any, name: str, *, amounts: bool) -> Path | None:  # noqa: ANN401
    """`name` is the key that holds the value; below `amounts` text may mean a quantity."""
    if rendered == live:
        return None
    if isinstance(rendered, dict):
        return _in_mapping(rendered, live, amounts=amounts or name in QUANTITIES)
    if isinstance(rendered, list):
        return _in_list(rendered, live or [], name)
    if not rendered and live is None:
        return None
    if (amounts or name in QUANTITIES) and _same_quantity(rendered, live):
        return None
    return ()


def _in_mapping(rendered: Manifest, live: Any, *, amounts: bool) -> Path | None:  # noqa: ANN401
    if not isinstance(live, dict):
        return ()
    for key, value in rendered.items():
        found = _in_value(value, live.get(key), key, amounts=amounts)
        if found is not None:
            return (key, *found)
    return None


def _in_list(rendered: list[Any], live: list[Any], name: str) -> Path | None:
    entry_key = _entry_key(rendered, name)
    if entry_key is not None:
        entries = {_identity(entry, entry_key): entry for entry in live}
        live = [entries.get(_identity(entry, entry_key)) for entry in rendered]
    elif len(rendered) != len(live):
        return ()
    for number, (wanted, standing) in enumerate(zip(rendered, live, strict=True)):
        found = _in_value(wanted, standing, "", amounts=False)
        if found is not None:
            return (str(number), *found)
    return None


def _entry_key(rendered: list[Any], name: str) -> tuple[str, ...] | None:
    if name == "ports" and rendered and isinstance(rendered[0], dict):
        number = next((key for key in PORT_KEYS if key in rendered[0]), None)
        return None if number is None else (number, "protocol")
    return ENTRY_KEYS.get(name)


def _identity(entry: Mapping[str, Any], key: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(entry.get(name, "TCP" if name == "protocol" else None) for name in key)


def _same_quantity(rendered: Any, live: Any) -> bool:  # noqa: ANN401
    wanted = amount(str(rendered))
    return wanted is not None and wanted == amount(str(live))
