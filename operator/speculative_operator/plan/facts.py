"""What the operator must still know of a revision long after the spec has moved on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from speculative_operator.api.base import ApiModel
from speculative_operator.api.speculation import Method

STARTUP_SPARE_SECONDS = 600
"""On top of an engine's start, before it counts as late: for the image and the scheduler."""


class RevisionFacts(ApiModel):
    """Recorded beside the pod template, once, when the revision is made. Read-only ever after."""

    method: Method
    schedule: bool = Field(description="The engine was started with a schedule: K can change live.")
    capacity: int = Field(description="Longest proposal that the engine was started for.")
    initial: int = Field(description="Proposal length that the engine starts with.")
    choices: tuple[int, ...] = Field(description="Lengths above 0 that have graphs, ascending.")
    max_num_seqs: int
    served_names: tuple[str, ...]
    startup_seconds: int = Field(description="How long an engine may take to load.")
    stands_in_for: str | None = Field(
        default=None,
        description="Key of the speculative revision whose autoregressive variant this is.",
    )
    target: str | None = Field(
        default=None, description="Digest of what decides the output: see `plan.sameness`."
    )
    hardware: str | None = Field(
        default=None, description="Digest of the GPUs and how the model is split over them."
    )
    reduced_from: str | None = Field(
        default=None,
        description="Key of the revision as the spec asks for it, which does not start.",
    )
    left_out: tuple[str, ...] | None = Field(
        default=None,
        description="Options of speculation, by vLLM's names, without which this one is started.",
    )

    def without_speculation(self) -> RevisionFacts:
        """As of an engine of method none: there is nothing to tune."""
        nothing = {"method": Method.NONE, "schedule": False, "capacity": 0, "initial": 0}
        return self.model_copy(update={**nothing, "choices": ()})

    def wire(self) -> Mapping[str, Any]:
        """As recorded, in camelCase."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
