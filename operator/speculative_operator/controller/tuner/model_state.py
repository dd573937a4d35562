"""What is told of a model's status in numbers: a few words of it, since all models are held."""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.conditions import ConditionStatus, ConditionType
from speculative_operator.api.status import Mode, ModelStatus


@dataclass(frozen=True, slots=True)
class ModelState:
    """As the last pass found it. `method` and `wanted` are None where the spec cannot be read."""

    conditions: tuple[tuple[ConditionType, ConditionStatus, str], ...]
    mode: Mode | None
    replicas: int
    ready: int
    method: str | None = None
    wanted: int | None = None

    @classmethod
    def of(
        cls, status: ModelStatus, *, method: str | None = None, wanted: int | None = None
    ) -> ModelState:
        """From the status that the pass has found."""
        return cls(
            conditions=tuple((c.type, c.status, c.reason) for c in status.conditions),
            mode=status.mode,
            replicas=status.replicas,
            ready=status.ready_replicas,
            method=method,
            wanted=wanted,
        )
