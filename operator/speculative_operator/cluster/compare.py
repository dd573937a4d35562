"""Whether a live object already says all that we render.

The API server adds defaults, drops empty values and rewrites quantities, and other people own
fields and list entries of their own. So the question is not "equal?" but "is everything rendered
there?". What we do not render is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

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
QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?")
SUFFIXES: Final = {
    "m": Fraction(1, 1000),
    **{name: Fraction(1000**power) for power, name in enumerate("kMGTPE", 1)},
    **{f"{name}i": Fraction(1024**power) for power, name in enumerate("KMGTPE", 1)},
}


def first_difference(rendered: Any, live: Any, path: tuple[str, ...] = ()) -> str | None:  # noqa: ANN401
    """The path of the first rendered value that the live object lacks or has otherwise, or None."""
    if isinstance(rendered, Mapping):
        return _in_mapping(rendered, live, path)
    if isinstance(rendered, Sequence) and not isinstance(rendered, str):
        return _in_list(rendered, live, path)
    if rendered == live or (not rendered and live is None) or _same_quantity(rendered, live, path):
        return None
    return _dotted(path)


def _in_mapping(rendered: Mapping[str, Any], live: Any, path: tuple[str, ...]) -> str | None:  # noqa: ANN401
    if not isinstance(live, Mapping):
        return _dotted(path)
    for key, value in rendered.items():
        if found := first_difference(value, live.get(key), (*path, key)):
            return found
    return None


def _in_list(rendered: Sequence[Any], live: Any, path: tuple[str, ...]) -> str | None:  # noqa: ANN401
    live = live or []
    entry_key = _entry_key(rendered, path)
    if entry_key is None:
        if len(rendered) != len(live):
            return _dotted(path)
        there = live
    else:
        entries = {_identity(entry, entry_key): entry for entry in live}
        there = [entries.get(_identity(entry, entry_key)) for entry in rendered]
    for number, (wanted, standing) in enumerate(zip(rendered, there, strict=True)):
        if found := first_difference(wanted, standing, (*path, str(number))):
            return found
    return None


def _entry_key(rendered: Sequence[Any], path: tuple[str, ...]) -> tuple[str, ...] | None:
    name = path[-1] if path else ""
    if name == "ports" and rendered and isinstance(rendered[0], Mapping):
        number = next((key for key in PORT_KEYS if key in rendered[0]), None)
        return None if number is None else (number, "protocol")
    return ENTRY_KEYS.get(name)


def _identity(entry: Mapping[str, Any], key: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(entry.get(name, "TCP" if name == "protocol" else None) for name in key)


def _same_quantity(rendered: Any, live: Any, path: tuple[str, ...]) -> bool:  # noqa: ANN401
    if live is None or not QUANTITIES.intersection(path[-2:]):
        return False
    wanted = _amount(str(rendered))
    return wanted is not None and wanted == _amount(str(live))


def _amount(text: str) -> Fraction | None:
    match = QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix is None:
        return Fraction(number)
    if suffix in SUFFIXES:
        return Fraction(number) * SUFFIXES[suffix]
    return Fraction(number + suffix)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the object"
