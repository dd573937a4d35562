"""What reconcile and the tuner tell each other, in memory.

Each pass puts the model down as the tuner should see it; the tuner's views wait here for the next
pass. All of it may be lost: a restart brings it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.tuner_ports import TunedModel, TuningView


class ModelFleet:
    """The tuner's port `Fleet`, and the newest view of each model."""

    def __init__(self) -> None:
        self._models: dict[Reference, TunedModel] = {}
        self._views: dict[str, TuningView] = {}

    def targets(self) -> Sequence[TunedModel]:
        """All models that have a revision."""
        return tuple(self._models.values())

    def put(self, reference: Reference, model: TunedModel | None) -> None:
        """The model as the last pass found it; None when there is nothing to tune."""
        before = self._models.pop(reference, None)
        if model is not None:
            self._models[reference] = model
        if before is not None and (model is None or model.uid != before.uid):
            self._views.pop(before.uid, None)

    def put_view(self, uid: str, view: TuningView) -> None:
        """What the tuner says of a model now."""
        self._views[uid] = view

    def view(self, uid: str) -> TuningView | None:
        """The newest view; None before the tuner's first word."""
        return self._views.get(uid)

    def told(self) -> tuple[tuple[Reference, TuningView], ...]:
        """The newest views of the models that there are."""
        return tuple(
            (reference, self._views[model.uid])
            for reference, model in self._models.items()
            if model.uid in self._views
        )
