"""What two revisions must have in common to be compared, as digests that are recorded with each.

The output of a model is decided by its weights and how they are computed with, never by the draft;
its speed besides by the GPUs.
"""

from __future__ import annotations

import hashlib
from typing import Any

from speculative_operator.api.base import ApiModel
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.api.speculation import Method
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.plan.revision import canonical

DIGITS = 10
OUTPUT = {"source", "revision", "dtype", "quantization", "trust_remote_code"}
PLACES = {"products", "count", "resource_name"}


def target(spec: SpeculativeModelSpec) -> str:
    """Equal where the output should be equal."""
    return _digest(_fields(spec.model, OUTPUT))


def hardware(spec: SpeculativeModelSpec) -> str:
    """Equal where a step should take as long."""
    accelerator = _fields(spec.accelerator, PLACES)
    accelerator["products"] = sorted(accelerator["products"])
    return _digest([accelerator, _fields(spec.parallelism)])


def _fields(section: ApiModel, include: set[str] | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = section.model_dump(mode="json", include=include)
    return fields


def _digest(what: object) -> str:
    return hashlib.sha256(canonical(what).encode()).hexdigest()[:DIGITS]


def output_incomparable(running: RevisionFacts, new: RevisionFacts) -> str | None:
    """Why the output of two revisions cannot be compared; None where it can."""
    if running.target is None or new.target is None:
        return "Output is not compared: the running revision is of an older operator."
    if running.target != new.target:
        return "Output is not compared: the model, its dtype, quantization or trust changed."
    return None


def speed_incomparable(running: RevisionFacts, new: RevisionFacts) -> str | None:
    """Why the speed of two revisions cannot be compared; None where it can."""
    if new.method is Method.NONE or new.stands_in_for is not None:
        return "Speed is not compared: the new revision does not speculate."
    if running.target != new.target:
        return "Speed is not compared: the model changed."
    if running.hardware is None or running.hardware != new.hardware:
        return "Speed is not compared: the accelerator or the parallelism changed."
    return None
