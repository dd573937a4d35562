"""What operators have saved and told of models, as it came, to see that nothing of it is lost."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from speculative_operator.api.names import LABEL_MODEL
from speculative_operator.controller.seen.times import rfc3339
from speculative_operator.tuning.history import Entry, entries
from speculative_operator.tuning.memory import Memory, from_data
from speculative_operator.tuning.verdict import Change
from tests.support.api import Manifest
from tests.support.nodeless import Place

Decision = tuple[str, int, int, int, int, str]
"""Its time in whole seconds, batch sizes low to high, K before and after, and the reason."""


@dataclass
class Kept:
    """By model, as watches deliver it: states of the memory's ConfigMap, and decisions that status
    has ever shown."""

    saved: dict[str, list[Manifest]] = field(default_factory=dict)
    shown: dict[str, set[Decision]] = field(default_factory=dict)

    def take_memory(self, config_map: Manifest) -> None:
        """A state of any ConfigMap."""
        metadata = config_map["metadata"]
        name = metadata.get("labels", {}).get(LABEL_MODEL, "")
        if not name or metadata["name"] != f"{name}-tuning" or "data" not in config_map:
            return
        known = self.saved.setdefault(name, [])
        if not known or _version(known[-1]) < _version(config_map):
            known.append(config_map)

    def take_status(self, model: Manifest) -> None:
        """A state of a model."""
        shown = self.shown.setdefault(model["metadata"]["name"], set())
        for found in model.get("status", {}).get("decisions", ()):
            batches = (found["minBatch"], found["maxBatch"])
            lengths = (found["before"], found["after"])
            shown.add((found["time"], *batches, *lengths, found["reason"]))

    def memories(self, name: str) -> Iterator[tuple[Memory, Memory]]:
        """Each with the one that was saved next."""
        return pairwise(map(memory_of, self.saved[name]))


def remembered(place: Place) -> list[Entry]:
    """All decisions on a model that its memory holds now, oldest first."""
    found = place.api.get("ConfigMap", place.namespace, f"{place.name}-tuning")
    assert found is not None
    return list(entries(memory_of(found).history))


def decision(change: Change) -> Decision:
    """As status shows it."""
    batches, lengths = (change.low, change.high), (change.before, change.after)
    return (rfc3339(change.at), *batches, *lengths, change.reason.value)


def memory_of(config_map: Manifest) -> Memory:
    """What it holds."""
    binary = config_map.get("binaryData", {})
    return from_data(
        config_map["data"], {key: base64.b64decode(value) for key, value in binary.items()}
    )


def _version(config_map: Manifest) -> int:
    return int(config_map["metadata"]["resourceVersion"])
