"""What reconcile and the tuner tell each other, in memory.

Each pass puts the model down as the tuner should see it; the tuner's views wait here for the next
pass. All of it may be lost: a restart brings it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.tuner.model_state import ModelState
from speculative_operator.controller.tuner.ports import TunedModel, TuningView
from speculative_operator.tuning.verdict import Evidence


@dataclass(frozen=True, slots=True)
class ModelTold:
    """What is known of one model. There is no `view` before the tuner's first word, and none where
    nothing is tuned."""

    model: Reference
    state: ModelState
    view: TuningView | None = None

    @property
    def labels(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.model.namespace, self.model.name

    @property
    def evidence(self) -> Evidence | None:
        """What the last window measured."""
        return self.view.evidence if self.view is not None else None


Told = tuple[ModelTold, ...]


class ModelFleet:
    """The tuner's port `Fleet`, and the newest view of each model."""

    def __init__(self) -> None:
        self._models: dict[Reference, TunedModel] = {}
        self._views: dict[str, TuningView] = {}
        self._states: dict[Reference, ModelState] = {}

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

    def put_state(self, reference: Reference, state: ModelState) -> None:
        """What the last pass has found of a model's status."""
        self._states[reference] = state

    def forget(self, reference: Reference) -> None:
        """The model is gone."""
        self.put(reference, None)
        self._states.pop(reference, None)

    def told(self) -> Told:
        """The newest that is known of each model that there is."""
        return tuple(
            ModelTold(reference, state, self._view_of(reference))
            for reference, state in self._states.items()
        )

    def _view_of(self, reference: Reference) -> TuningView | None:
        model = self._models.get(reference)
        return self._views.get(model.uid) if model is not None else None
