"""Who owns an object's fields: makes what we created ours in the sense of server-side apply.

The API server books a creation as an update: a field set by it stays when a later apply no longer
has it, such as the old port of a Service whose port was changed. So before an apply that may drop
fields, the booking is changed to what it was meant to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speculative_operator.api.names import FIELD_MANAGER
from speculative_operator.cluster.manifests import Manifest


def as_applied(entries: list[Manifest]) -> list[Manifest] | None:
    """`metadata.managedFields` with our creation booked as our apply; None where it is already."""
    created = next((entry for entry in entries if _is_ours(entry, "Update")), None)
    if created is None:
        return None
    applied = next((entry for entry in entries if _is_ours(entry, "Apply")), {})
    fields = _union(created["fieldsV1"], applied.get("fieldsV1", {}))
    others = [entry for entry in entries if entry is not created and entry is not applied]
    return [*others, {**created, "operation": "Apply", "fieldsV1": fields}]


def owned_annotations(entries: list[Manifest]) -> set[str]:
    """Names of the annotations that we have set, by `metadata.managedFields`."""
    ours = [e for e in entries if _is_ours(e, "Update") or _is_ours(e, "Apply")]
    fields = (e["fieldsV1"].get("f:metadata", {}).get("f:annotations", {}) for e in ours)
    return {name.removeprefix("f:") for owned in fields for name in owned if name != "."}


def _is_ours(entry: Mapping[str, Any], operation: str) -> bool:
    return (entry["manager"], entry["operation"], entry.get("subresource", "")) == (
        FIELD_MANAGER,
        operation,
        "",
    )


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> Manifest:
    return {
        key: _union(one.get(key, {}), other.get(key, {}))
        for key in sorted(one.keys() | other.keys())
    }
