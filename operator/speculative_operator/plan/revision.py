"""The key of a revision: equal keys mean that the running pods are what the spec asks for.

The key is the first 10 hex digits of SHA-256 over canonical JSON of {`spec`: the fields that shape
a pod, those at their first default (`plan.key_defaults`) left out; `variant`; `refresh`}. So the
key stays when a newer CRD brings a new defaulted field or changes a default. Lists that mean a set
or a map are sorted; the order of arguments, served names and the overlay means something and stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.plan.key_defaults import DEFAULTS_SO_FAR
from speculative_operator.tuning.variant import Variant

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

NOT_SHAPING: dict[str, Any] = {
    "model": {"weights_size": True, "kv_cache_per_token": True},
    "speculation": {"draft": {"weights_size": True}},
}
"""Fields of those sections that only tell how large something is."""

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

OVERLAY = "runtime.podTemplate"


def revision_key(
    spec: SpeculativeModelSpec,
    refresh: str | None,
    variant: Variant = Variant.SPECULATIVE,
    left_out: Sequence[str] = (),
) -> str:
    """10 hex digits. `refresh` is the value of the annotation `speculation.dev/refresh`, `left_out`
    the options of speculation that the spec has and this variant has not."""
    named = f"reduced:{','.join(sorted(left_out))}" if left_out else variant.value
    what = {"spec": _pod_shaping(spec), "variant": named, "refresh": refresh}
    return hashlib.sha256(canonical(what).encode()).hexdigest()[:KEY_LENGTH]


def canonical(value: object) -> str:
    """JSON with sorted keys and without blanks: one text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _pod_shaping(spec: SpeculativeModelSpec) -> Mapping[str, Any]:
    fields: dict[str, Any] = spec.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_unset=True,
        include=POD_SHAPING,
        exclude=NOT_SHAPING,
    )
    for path in UNORDERED:
        _sort(fields, path)
    return _written(fields, "")


def _written(fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The fields of a section without those at their first default."""
    kept = {name: _value(value, f"{prefix}{name}") for name, value in fields.items()}
    return {
        name: value for name, value in kept.items() if not _is_default(value, f"{prefix}{name}")
    }


def _value(value: object, at: str) -> object:
    """A field's value without the defaults in it. What the overlay holds is the user's own."""
    if isinstance(value, Mapping) and at != OVERLAY:
        return _written(value, f"{at}.")
    if isinstance(value, list):
        return [_value(entry, f"{at}[]") for entry in value]
    return value


def _is_default(value: object, at: str) -> bool:
    first, *_ = DEFAULTS_SO_FAR.get(at, (None,))
    return value == first if first is not None else value in (None, [], {})


def _sort(fields: dict[str, Any], path: tuple[str, ...]) -> None:
    *parents, last = path
    for name in parents:
        if name not in fields:
            return
        fields = fields[name]
    if last in fields:
        fields[last] = sorted(fields[last], key=canonical)
