"""The key of a revision: equal keys mean that the running pods are what the spec asks for.

The key is the first 10 hex digits of SHA-256 over canonical JSON of {`spec`: the fields that shape
a pod, those at their default left out; `variant`; `refresh`}. Leaving defaults out keeps the key
when a newer CRD brings a new defaulted field. Lists that mean a set or a map are sorted; the order
of arguments, served names and the overlay means something and stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from speculative_operator.api.resource import SpeculativeModelSpec

KEY_LENGTH = 10

POD_SHAPING: dict[str, Any] = {
    "model": True,
    "speculation": {
        "method": True,
        "draft": True,
        "options": True,
        "proposal_length": {"capacity": True, "choices": True},
    },
    "accelerator": True,
    "parallelism": True,
    "runtime": True,
}
"""What is in the key. Not in it: what is live, and what lies outside of the pods."""

UNORDERED = (
    ("speculation", "proposalLength", "choices"),
    ("accelerator", "products"),
    ("accelerator", "tolerations"),
    ("runtime", "env"),
    ("runtime", "imagePullSecrets"),
    ("runtime", "supplementalGroups"),
    ("runtime", "securityContext", "capabilities", "add"),
    ("runtime", "securityContext", "capabilities", "drop"),
)
"""Lists whose order means nothing."""


class Variant(StrEnum):
    """How a revision runs the model."""

    SPECULATIVE = "speculative"
    AUTOREGRESSIVE = "autoregressive"
    """Without a speculative config: plain decoding at its true speed."""


def revision_key(spec: SpeculativeModelSpec, variant: Variant, refresh: str | None) -> str:
    """10 hex digits. `refresh` is the value of the annotation `speculation.dev/refresh`."""
    what = {"spec": _pod_shaping(spec), "variant": variant.value, "refresh": refresh}
    return hashlib.sha256(canonical(what).encode()).hexdigest()[:KEY_LENGTH]


def canonical(value: object) -> str:
    """JSON with sorted keys and without blanks: one text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _pod_shaping(spec: SpeculativeModelSpec) -> Mapping[str, Any]:
    fields: dict[str, Any] = spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, include=POD_SHAPING
    )
    for path in UNORDERED:
        _sort(fields, path)
    return _without_empty(fields)


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out sections of which all is default. What the overlay holds is the user's own."""
    kept = {
        name: _without_empty(value)
        if isinstance(value, Mapping) and name != "podTemplate"
        else value
        for name, value in fields.items()
    }
    return {name: value for name, value in kept.items() if value != {}}


def _sort(fields: dict[str, Any], path: tuple[str, ...]) -> None:
    *parents, last = path
    for name in parents:
        if name not in fields:
            return
        fields = fields[name]
    if last in fields:
        fields[last] = sorted(fields[last], key=canonical)
