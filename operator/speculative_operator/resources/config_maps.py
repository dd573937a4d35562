"""The two ConfigMaps of the tuner: the schedule that a revision plays, and the tuner's memory."""

from __future__ import annotations

from collections.abc import Mapping

from speculative_operator.plan.environment import SCHEDULE_KEY
from speculative_operator.plan.names import Owner, model_names, revision_names
from speculative_operator.resources.metadata import Manifest, metadata


def schedule_configmap(owner: Owner, key: str, text: str) -> Manifest:
    """The schedule file of revision `key`, mounted as a folder by its pods."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(owner, revision_names(owner, key).schedule, "schedule", revision=key),
        "data": {SCHEDULE_KEY: text},
    }


def memory_configmap(owner: Owner, data: Mapping[str, str], binary: Mapping[str, str]) -> Manifest:
    """What the tuner remembers of a model; `binary` is base64."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(owner, model_names(owner).memory, "memory"),
        "data": dict(data),
        "binaryData": dict(binary),
    }
