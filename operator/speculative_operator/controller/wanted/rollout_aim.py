"""Which revisions should have how many pods, and the next step on the way there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.controller.trials.marks import beside
from speculative_operator.controller.wanted.policy import (
    policy_of,
    trial_arms,
)
from speculative_operator.controller.wanted.probation import Known, Probation
from speculative_operator.controller.wanted.surging import chance, told_in_place
from speculative_operator.controller.wanted.told import Told
from speculative_operator.controller.wanted.variants import Current
from speculative_operator.plan.names import Owner, revision_names
from speculative_operator.plan.rollout import RevisionState, Scale, next_scale, targets
from speculative_operator.plan.surge import rolling, way
from speculative_operator.resources.controller_revision import RecordedRevision
from speculative_operator.resources.disruption_budget import disruption_budget


class RolloutAim:
    """What follows once the revision to run is known: `states`, the revisions with the replicas
    that they should end with, and the `way` there; `budget`, for drains of nodes."""

    def __init__(
        self,
        model: SpeculativeModel,
        seen: Observed,
        wanted: Current,
        told: Told,
    ) -> None:
        self.model = model
        self.owner = Owner.of(model)
        self.seen = seen
        self.hung = told.hung
        self.wanted = wanted
        current = wanted.main.revision
        sensor = wanted.sensor.revision if wanted.sensor is not None else None
        older = [key for key in seen.by_age() if key != current.key]
        self.revisions: Mapping[str, RecordedRevision] = {
            **{key: seen.revisions[key].recorded for key in older},
            **({sensor.key: sensor} if sensor is not None else {}),
            current.key: current,
        }
        self.budget = disruption_budget(self.owner, model.spec.rollout, model.spec.replicas)
        self.good = [key for key in self.revisions if seen.is_good(key, told.last_good)]
        asked_for = {key: each.replicas for key, each in seen.deployments.items()}
        self.beside = beside(asked_for, self.good)
        self.probation = self._on_trial(told)
        plain = self._targets(sensor.key if sensor is not None else None)
        self.rollout = self._states(plain)
        one_more = chance(current, self.rollout, seen, now=told.now, counted=told.counted)
        self.way = way(model.spec.rollout, self.rollout, one_more, downtime=self._downtime())
        self.states = self._states(self._beside_one()) if self._is_beside_one() else self.rollout

    def _states(self, wanted: Mapping[str, int]) -> tuple[RevisionState, ...]:
        """The revisions, the current one last."""
        return tuple(
            self.seen.state(key, wanted[key], served=key in self.good, hung=self.hung)
            for key in self.revisions
        )

    def _on_trial(self, told: Told) -> Probation | None:
        """The trial of the current revision, if it is on trial."""
        current = self.wanted.main.revision
        if self.seen.standing(current.key) is not Standing.TRIAL:
            return None
        return Probation(
            seen=self.seen,
            spec=self.model.spec.rollout.trial,
            known=Known(told.now, told.answering, told.findings, told.hung),
            key=current.key,
            running=self.beside or next(reversed(self.good), None),
            arms=trial_arms(policy_of(self.model.spec, current.facts)),
        )

    def _targets(self, sensor: str | None) -> Mapping[str, int]:
        """Replicas by revision. A revision on trial has one of several; the others are the good
        one's that runs, or is to run again: the model was parked, or somebody has deleted its
        Deployment. Where no start can succeed none is made, but no pod that serves is taken away
        for that."""
        current, total = self.wanted.main.revision.key, self.model.spec.replicas
        if self.wanted.stopped:
            routed = {key: sum(p.routed for p in self.seen.pods_of(key)) for key in self.revisions}
            return {key: min(count, total) for key, count in routed.items()}
        others = self.probation.running if self.probation is not None else None
        if others is not None and total > 1:
            return targets(self.revisions, others, total, current)
        return targets(self.revisions, current, total, sensor)

    def _is_beside_one(self) -> bool:
        """Whether one pod is on trial beside the only other one: as long as one more may be."""
        on_trial = self.probation is not None and self.beside is not None
        return on_trial and self.model.spec.replicas == 1 and self.way.limits.surge > 0

    def _beside_one(self) -> Mapping[str, int]:
        both = {self.beside, self.wanted.main.revision.key}
        return {key: 1 if key in both else 0 for key in self.revisions}

    def unproven(self, key: str) -> bool:
        """Whether a revision is on trial, or will be once it is recorded."""
        is_new = key not in self.seen.revisions and bool(self.good)
        return is_new or self.seen.standing(key) is Standing.TRIAL

    def scale(self) -> Scale | None:
        """None until a new Deployment stands beside the others: it is made with 0 replicas first.

        Only the API server can tell whether it takes the pod template, and where it does not, no
        pod must have gone for it. None, too, while it is not known what is wanted, or what the
        running revision answers; but parking waits for no engine.
        """
        wanted = {state.key for state in self.states if state.wanted or self.is_last(state)}
        standing = self.seen.deployments.keys()
        if self.wanted.held or self.way.give_up or (standing and not wanted <= standing):
            return None
        asks = self.probation is not None and self.probation.waits_for_reference
        if asks and self.model.spec.replicas:
            return None
        return next_scale(self.states, self.way.limits)

    def _downtime(self) -> bool:
        """Whether nothing may serve for a while. A restart off speculation has its own leave."""
        moved = [state.key for state in self.rollout[:-1] if state.holding > state.wanted]
        restarts = bool(moved) and all(key in self.wanted.pair for key in moved)
        spec = self.model.spec
        return spec.rollout.allow_downtime or (restarts and spec.tuning.fallback.allow_downtime)

    def in_place(self) -> Iterator[tuple[str, str | None]]:
        """What records are to say of going in place, by key: why, once it is given up to surge;
        None once the rollout is over, or was cut short. While one pod of several is on trial no
        other moves, but the rollout is not over."""
        *others, current = self.rollout
        record = self.seen.revisions.get(current.key)
        over = self.probation is None and not rolling(self.rollout)
        if record is not None and self.way.give_up and self.way.in_place is not None:
            yield current.key, told_in_place(self.way.in_place, self.rollout, self.seen)
        elif record is not None and record.in_place is not None and over:
            yield current.key, None
        for state in others:
            record = self.seen.revisions.get(state.key)
            name = revision_names(self.owner, state.key).controller_revision
            stands = Reference("ControllerRevision", self.owner.namespace, name) in self.seen.copies
            if stands and record is not None and record.in_place is not None:
                yield state.key, None

    def serving(self) -> RecordedRevision:
        """The newest of those that have most pods on the Service. One on trial only where no other
        has any."""

        def says_most(state: RevisionState) -> tuple[bool, int]:
            return state.key in self.good and state.ready > 0, state.ready

        return self.revisions[max(reversed(self.states), key=says_most).key]

    def over(self, state: RevisionState) -> bool:
        """Not while it may be the variant that is wanted: a rollout to it may just have begun."""
        awaited = self.wanted.held and state.key in self.wanted.pair
        return state.gone and not awaited and not self.is_last(state)

    def is_last(self, state: RevisionState) -> bool:
        return state is self.states[-1]
