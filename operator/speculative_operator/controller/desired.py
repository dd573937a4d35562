"""What should stand in the cluster for one model: plan and build, pure.

Everything follows from the spec and from what is observed; nothing is remembered between passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.cache import Copy
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.observed import Observed
from speculative_operator.controller.pods import Pod
from speculative_operator.controller.policy import (
    policy_of,
    start_text,
    trial_arms,
    trial_text,
)
from speculative_operator.controller.probation import Known, Probation
from speculative_operator.controller.revision_verdict import RevisionVerdict, Standing
from speculative_operator.controller.start_failures import not_to_start
from speculative_operator.controller.surging import chance, told_in_place, worth_counting
from speculative_operator.controller.times import rfc3339
from speculative_operator.controller.trial_checks import Findings
from speculative_operator.controller.trial_marks import beside, recordable, serving_labels
from speculative_operator.controller.variants import Current, Pair, current, pair_of
from speculative_operator.plan.continuations import ReferenceOutput
from speculative_operator.plan.memory import tightness
from speculative_operator.plan.names import Owner, model_names, revision_names
from speculative_operator.plan.rollout import RevisionState, Scale, next_scale, targets
from speculative_operator.plan.settings import Settings
from speculative_operator.plan.surge import Counted, Way, rolling, way
from speculative_operator.resources.config_maps import memory_configmap, schedule_configmap
from speculative_operator.resources.controller_revision import RecordedRevision
from speculative_operator.resources.deployment import deployment
from speculative_operator.resources.disruption_budget import disruption_budget
from speculative_operator.resources.service import service
from speculative_operator.resources.service_account import service_account
from speculative_operator.tuning.variant import VariantChoice
from speculative_operator.tuning.verdict import Verdict

MOST_BAD_RECORDS = 10
"""Bad revisions that are remembered, the newest ones."""


@dataclass(frozen=True)
class Told:
    """What is known besides the cluster's objects.

    now         Unix time
    last_good   the key that status calls so
    choice      the variant that the tuner wants; None before its first word
    answering   the incarnations of pods whose engines list the served names
    findings    what was found out about the revision on trial
    hung        engines that hang, by pod UID, in words
    replace     the UIDs of pods that are to be replaced
    counted     whether the GPUs of one pod more are free, where that was looked at
    """

    now: float
    last_good: str | None = None
    choice: VariantChoice | None = None
    answering: Collection[str] = ()
    findings: Findings | None = None
    hung: Mapping[str, str] = field(default_factory=dict)
    replace: Collection[str] = ()
    counted: Counted | None = None


@dataclass(frozen=True)
class Desired:
    """One pass's aim.

    current      the revision that should run; None where nothing can
    pair         the two variants of the revision that serves
    serving      the revision whose pods serve most; the current one while none does
    new          ControllerRevisions to be recorded before anything else
    before_pods  what pods need at their start, and the Service
    pods         Deployments
    leftovers    ours, needed no longer
    replaced     pods that are to go, so that others come in their place
    hung         engines that hang, by pod UID, in words
    labels       pods whose `serving` label should have the other value
    found        what was found out about revisions in this pass, by key
    probation    the trial of the current revision, while it is on trial
    reference    what the running revision answered, to be recorded with the one on trial
    rejected     why the revision that the spec asks for should not run
    stopped      no start of the current revision can succeed, so it gets no pods
    states       the revisions as the rollout counts them, the current one last
    way          how the rollout goes on
    in_place     what the current revision's record is to say of going in place; None to leave it
    counts       whether it matters how many GPUs are free
    """

    accepted: Verdict
    current: RecordedRevision | None = None
    serving: RecordedRevision | None = None
    pair: Pair | None = None
    new: tuple[Manifest, ...] = ()
    before_pods: tuple[Manifest, ...] = ()
    pods: tuple[Manifest, ...] = ()
    leftovers: tuple[Copy, ...] = ()
    replaced: tuple[Pod, ...] = ()
    hung: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[tuple[Pod, str], ...] = ()
    found: tuple[tuple[str, RevisionVerdict], ...] = ()
    probation: Probation | None = None
    reference: tuple[str, ReferenceOutput] | None = None
    rejected: RevisionVerdict | None = None
    stopped: bool = False
    states: tuple[RevisionState, ...] = ()
    way: Way | None = None
    in_place: str | None = None
    counts: bool = False


def desire(model: SpeculativeModel, seen: Observed, settings: Settings, told: Told) -> Desired:
    """What to aim at."""
    accepted, wanted = current(model, seen, settings, told.choice, told.last_good)
    if wanted is None:
        return Desired(accepted)
    aim = _Aim(model, seen, wanted, told)
    tight = tightness(model.spec)
    if tight is not None and accepted.status is ConditionStatus.TRUE:
        accepted = Verdict(ConditionStatus.TRUE, Reason.MEMORY_TIGHT, tight)
    probation, good, serving = aim.probation, aim.good, aim.serving()
    now = rfc3339(told.now)
    verdict = probation.verdict(now) if probation is not None else None
    reference = probation.reference if probation is not None else None
    key = wanted.main.revision.key
    ruled = {key: verdict} if verdict is not None else {}
    return Desired(
        accepted=accepted,
        current=wanted.main.revision,
        serving=serving,
        pair=wanted.pair if serving.key in wanted.pair else pair_of(serving.key, seen),
        new=tuple(recordable(manifest, good, now) for manifest in wanted.missing),
        before_pods=tuple(aim.before_pods()),
        pods=tuple(aim.pods()),
        leftovers=tuple(aim.leftovers(keep=good[-1:])),
        replaced=tuple(pod for pod in seen.pods if pod.alive and pod.uid in told.replace),
        hung=told.hung,
        labels=tuple(serving_labels(seen, key, serves=probation is not None and probation.serves)),
        found=tuple({**ruled, **dict(not_to_start(seen, good, now))}.items()),
        probation=probation,
        reference=(key, reference) if reference is not None else None,
        rejected=wanted.rejected,
        stopped=wanted.stopped,
        states=aim.states,
        way=aim.way,
        in_place=aim.in_place(),
        counts=worth_counting(model.spec.rollout, aim.rollout, seen),
    )


class _Aim:
    """What follows once the revision to run is known."""

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
        self.wanted = wanted
        current = wanted.main.revision
        sensor = wanted.sensor.revision if wanted.sensor is not None else None
        older = [key for key in seen.by_age() if key != current.key]
        self.revisions: Mapping[str, RecordedRevision] = {
            **{key: seen.revisions[key].recorded for key in older},
            **({sensor.key: sensor} if sensor is not None else {}),
            current.key: current,
        }
        self.good = [key for key in self.revisions if seen.is_good(key, told.last_good)]
        asked_for = {key: d.replicas for key, d in seen.deployments.items() if key in self.good}
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
            self.seen.state(key, wanted[key], served=key in self.good) for key in self.revisions
        )

    def _on_trial(self, told: Told) -> Probation | None:
        """The trial of the current revision, if it is on trial."""
        current = self.wanted.main.revision
        if self.seen.standing(current.key) is not Standing.TRIAL:
            return None
        return Probation(
            seen=self.seen,
            spec=self.model.spec.rollout.trial,
            known=Known(told.now, told.answering, told.findings),
            key=current.key,
            running=self.beside or next(reversed(self.good), None),
            arms=trial_arms(policy_of(self.model.spec, current.facts)),
        )

    def _targets(self, sensor: str | None) -> Mapping[str, int]:
        """Replicas by revision. A revision on trial has one of several."""
        current = self.wanted.main.revision.key
        total = 0 if self.wanted.stopped else self.model.spec.replicas
        if self.probation is not None and self.beside is not None and total > 1:
            return targets(self.revisions, self.beside, total, current)
        return targets(self.revisions, current, total, sensor)

    def _is_beside_one(self) -> bool:
        """Whether one pod is on trial beside the only other one: as long as one more may be."""
        on_trial = self.probation is not None and self.beside is not None
        return on_trial and self.model.spec.replicas == 1 and self.way.limits.surge > 0

    def _beside_one(self) -> Mapping[str, int]:
        both = {self.beside, self.wanted.main.revision.key}
        return {key: 1 if key in both else 0 for key in self.revisions}

    def before_pods(self) -> Iterator[Manifest]:
        """The Service is among them so that a taken name is found before a GPU is."""
        account = service_account(self.owner, self.model.spec.runtime)
        if account is not None:
            yield account
        yield service(self.owner, self.model.spec.service)
        budget = disruption_budget(self.owner, self.model.spec.rollout, self.model.spec.replicas)
        if budget is not None:
            yield budget
        yield _metadata_only(memory_configmap(self.owner, {}, {}))
        for state in self.states:
            facts = self.revisions[state.key].facts
            if facts.schedule and not self._over(state):
                policy = policy_of(self.model.spec, facts)
                start = trial_text(policy) if self._unproven(state.key) else start_text(policy)
                text = self.seen.schedules.get(state.key) or start
                config_map = schedule_configmap(self.owner, state.key, text)
                stands = _reference("ConfigMap", config_map) in self.seen.copies
                yield _metadata_only(config_map) if stands else config_map

    def _unproven(self, key: str) -> bool:
        """Whether a revision is on trial, or will be once it is recorded."""
        is_new = key not in self.seen.revisions and bool(self.good)
        return is_new or self.seen.standing(key) is Standing.TRIAL

    def pods(self) -> Iterator[Manifest]:
        scale = self._scale()
        for state in self.states:
            stands = state.key in self.seen.deployments
            if self._is_last(state) or state.wanted or (stands and not self._over(state)):
                replicas = (
                    scale.replicas
                    if scale is not None and scale.key == state.key
                    else state.replicas
                )
                yield deployment(self.owner, self.revisions[state.key], replicas)

    def _scale(self) -> Scale | None:
        """None until a new Deployment stands beside the others: it is made with 0 replicas first.

        Only the API server can tell whether it takes the pod template, and where it does not, no
        pod must have gone for it. None, too, while it is not known what is wanted, or what the
        running revision answers.
        """
        wanted = {state.key for state in self.states if state.wanted or self._is_last(state)}
        standing = self.seen.deployments.keys()
        if self.wanted.held or self.way.give_up or (standing and not wanted <= standing):
            return None
        if self.probation is not None and self.probation.waits_for_reference:
            return None
        return next_scale(self.states, self.way.limits)

    def _downtime(self) -> bool:
        """Whether nothing may serve for a while. A restart off speculation has its own leave."""
        moved = [state.key for state in self.rollout[:-1] if state.holding > state.wanted]
        restarts = bool(moved) and all(key in self.wanted.pair for key in moved)
        spec = self.model.spec
        return spec.rollout.allow_downtime or (restarts and spec.tuning.fallback.allow_downtime)

    def in_place(self) -> str | None:
        """Given up: why. Over: nothing. It is not news otherwise."""
        record = self.seen.revisions.get(self.rollout[-1].key)
        if record is None:
            return None
        if self.way.give_up and self.way.in_place is not None:
            return told_in_place(self.way.in_place, self.rollout, self.seen)
        return "" if record.in_place is not None and not rolling(self.rollout) else None

    def serving(self) -> RecordedRevision:
        """The newest of those that have most pods on the Service. One on trial only where no other
        has any."""

        def says_most(state: RevisionState) -> tuple[bool, int]:
            return state.key in self.good and state.ready > 0, state.ready

        return self.revisions[max(reversed(self.states), key=says_most).key]

    def leftovers(self, keep: Collection[str]) -> Iterator[Copy]:
        """What revisions that are over leave behind. The records in `keep` may be wanted again, and
        so may either variant of the current one; those of the last bad ones say that they are."""
        over = {state.key for state in self.states if self._over(state)}
        unknown = self.seen.deployments.keys() - self.revisions.keys()
        idle = {key for key in unknown if not any(pod.ready for pod in self.seen.pods_of(key))}
        for key in sorted(over | idle):
            names = revision_names(self.owner, key)
            kinds = {"Deployment": names.deployment, "ConfigMap": names.schedule}
            if key not in {*keep, *self._bad()} and key not in self.wanted.pair:
                kinds["ControllerRevision"] = names.controller_revision
            for kind, name in kinds.items():
                copy = self.seen.copies.get(Reference(kind, self.owner.namespace, name))
                if copy is not None:
                    yield copy
        yield from self._unwanted_once()

    def _unwanted_once(self) -> Iterator[Copy]:
        """Of what a model has once."""
        names, rollout = model_names(self.owner), self.model.spec.rollout
        budget = disruption_budget(self.owner, rollout, self.model.spec.replicas)
        unwanted = {}
        if names.service_account not in self._accounts():
            unwanted["ServiceAccount"] = names.service_account
        if budget is None:
            unwanted["PodDisruptionBudget"] = names.disruption_budget
        for kind, name in unwanted.items():
            copy = self.seen.copies.get(Reference(kind, self.owner.namespace, name))
            if copy is not None:
                yield copy

    def _bad(self) -> Collection[str]:
        bad = [key for key in self.seen.by_age() if self.seen.standing(key) is Standing.BAD]
        return bad[-MOST_BAD_RECORDS:]

    def _accounts(self) -> Collection[str]:
        """ServiceAccounts that pods of now or later have."""
        return {
            self.revisions[state.key].template["spec"]["serviceAccountName"]
            for state in self.states
            if not self._over(state)
        }

    def _over(self, state: RevisionState) -> bool:
        """Not while it may be the variant that is wanted: a rollout to it may just have begun."""
        awaited = self.wanted.held and state.key in self.wanted.pair
        return state.gone and not awaited and not self._is_last(state)

    def _is_last(self, state: RevisionState) -> bool:
        return state is self.states[-1]


def _metadata_only(config_map: Manifest) -> Manifest:
    """The tuner writes what is in it."""
    return {key: config_map[key] for key in ("apiVersion", "kind", "metadata")}


def _reference(kind: str, manifest: Manifest) -> Reference:
    metadata = manifest["metadata"]
    return Reference(kind, metadata["namespace"], metadata["name"])
