"""What should stand in the cluster for one model: plan and build, pure.

Everything follows from the spec and from what is observed; nothing is remembered between passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.names import ANNOTATION_VERDICT
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.status import ModelStatus
from speculative_operator.cluster.cache import Copy
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.observed import GOOD, TRIAL, Observed
from speculative_operator.controller.pods import Pod
from speculative_operator.controller.policy import policy_of, start_text
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.model import key_of, plan
from speculative_operator.plan.names import Owner, model_names, revision_names
from speculative_operator.plan.rollout import RevisionState, Scale, limits, next_scale, targets
from speculative_operator.plan.settings import Settings
from speculative_operator.resources.config_maps import memory_configmap, schedule_configmap
from speculative_operator.resources.controller_revision import (
    RecordedRevision,
    controller_revision,
    recorded,
)
from speculative_operator.resources.deployment import deployment
from speculative_operator.resources.service import service
from speculative_operator.resources.service_account import service_account
from speculative_operator.tuning.verdict import Verdict

ACCEPTED = Verdict(ConditionStatus.TRUE, Reason.VALID, "The resource can be run as written.")


@dataclass(frozen=True)
class Desired:
    """One pass's aim.

    current      the revision that should run; None where nothing can
    serving      the revision whose pods serve most; the current one while none does
    new          a ControllerRevision to be recorded before anything else
    before_pods  what pods need at their start, and the Service
    pods         Deployments
    leftovers    ours, needed no longer
    labels       pods whose `serving` label should have the other value
    proven       the revision on trial of which a pod has passed
    states       the revisions as the rollout counts them, the current one last
    """

    accepted: Verdict
    current: RecordedRevision | None = None
    serving: RecordedRevision | None = None
    new: Manifest | None = None
    before_pods: tuple[Manifest, ...] = ()
    pods: tuple[Manifest, ...] = ()
    leftovers: tuple[Copy, ...] = ()
    labels: tuple[tuple[Pod, str], ...] = ()
    proven: str | None = None
    states: tuple[RevisionState, ...] = ()


def desire(
    model: SpeculativeModel,
    seen: Observed,
    settings: Settings,
    *,
    last_good: str | None,
    answering: Collection[str],
) -> Desired:
    """What to aim at.

    `last_good` is the key that status calls so, `answering` are the incarnations of pods whose
    engines list the served names.
    """
    accepted, current = _current_revision(model, seen, settings)
    if current is None:
        return Desired(accepted)
    aim = _Aim(model, seen, current.revision, last_good)
    served = [state.key for state in aim.states if state.served]
    unproven = bool(served) and current.revision.key not in served
    return Desired(
        accepted=accepted,
        current=current.revision,
        serving=aim.serving(),
        new=_on_trial(current.missing) if current.missing and unproven else current.missing,
        before_pods=tuple(aim.before_pods()),
        pods=tuple(aim.pods()),
        leftovers=tuple(aim.leftovers(keep=served[-1:])),
        labels=tuple(_labels(seen)),
        proven=_proven(seen, answering),
        states=aim.states,
    )


@dataclass(frozen=True)
class _Current:
    """The revision to run, and its ControllerRevision where that does not stand."""

    revision: RecordedRevision
    missing: Manifest | None = None


def _current_revision(
    model: SpeculativeModel, seen: Observed, settings: Settings
) -> tuple[Verdict, _Current | None]:
    """The revision that the spec asks for.

    While that is refused it is the one that was current before, else the newest recorded one.
    """
    key = key_of(model)
    if key in seen.revisions:
        manifest = seen.revisions[key].manifest
        stands = _reference("ControllerRevision", manifest) in seen.copies
        missing = None if stands else _without_identity(manifest)
        return ACCEPTED, _Current(seen.revisions[key].recorded, missing)
    try:
        new = controller_revision(plan(model, settings))
    except ModelInvalid as refusal:
        verdict = Verdict(ConditionStatus.FALSE, Reason.INVALID, str(refusal))
        known = [*seen.by_age(), *_current_so_far(model, seen)]
        return verdict, _Current(seen.revisions[known[-1]].recorded) if known else None
    return ACCEPTED, _Current(recorded(new), new)


def _current_so_far(model: SpeculativeModel, seen: Observed) -> Iterator[str]:
    """In a rollback it is not the newest one."""
    before = ModelStatus.read(model.status)
    key = before.revisions.current if before is not None else None
    if key is not None and key in seen.revisions:
        yield key


def _on_trial(new: Manifest) -> Manifest:
    """It must prove itself before requests reach it, since another revision serves."""
    metadata = new["metadata"]
    annotations = {ANNOTATION_VERDICT: TRIAL, **metadata.get("annotations", {})}
    return {**new, "metadata": {**metadata, "annotations": annotations}}


def _without_identity(manifest: Manifest) -> Manifest:
    """A deleted object as it can be created again."""
    metadata = manifest["metadata"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    return {**manifest, "metadata": {key: metadata[key] for key in kept if key in metadata}}


class _Aim:
    """What follows once the revision to run is known."""

    def __init__(
        self,
        model: SpeculativeModel,
        seen: Observed,
        current: RecordedRevision,
        last_good: str | None,
    ) -> None:
        self.model = model
        self.owner = Owner.of(model)
        self.seen = seen
        older = [key for key in seen.by_age() if key != current.key]
        self.revisions: Mapping[str, RecordedRevision] = {
            **{key: seen.revisions[key].recorded for key in older},
            current.key: current,
        }
        wanted = targets(older, current.key, model.spec.replicas)
        good = {last_good, *(key for key in seen.revisions if seen.verdict(key) == GOOD)}
        self.states = tuple(
            seen.state(key, wanted[key], served=key in good) for key in self.revisions
        )

    def before_pods(self) -> Iterator[Manifest]:
        """The Service is among them so that a taken name is found before a GPU is."""
        account = service_account(self.owner, self.model.spec.runtime)
        if account is not None:
            yield account
        yield service(self.owner, self.model.spec.service)
        yield _metadata_only(memory_configmap(self.owner, {}, {}))
        for state in self.states:
            facts = self.revisions[state.key].facts
            if facts.schedule and not self._over(state):
                text = self.seen.schedules.get(state.key) or start_text(
                    policy_of(self.model.spec, facts)
                )
                config_map = schedule_configmap(self.owner, state.key, text)
                stands = _reference("ConfigMap", config_map) in self.seen.copies
                yield _metadata_only(config_map) if stands else config_map

    def pods(self) -> Iterator[Manifest]:
        scale = self._scale()
        for state in self.states:
            stands = state.key in self.seen.deployments
            if self._is_last(state) or (stands and not self._over(state)):
                replicas = (
                    scale.replicas
                    if scale is not None and scale.key == state.key
                    else state.replicas
                )
                yield deployment(self.owner, self.revisions[state.key], replicas)

    def _scale(self) -> Scale | None:
        """None until a new Deployment stands beside the others: it is made with 0 replicas first.

        Only the API server can tell whether it takes the pod template, and where it does not, no
        pod must have gone for it.
        """
        others = self.seen.deployments.keys() - {self.states[-1].key}
        if others and self.states[-1].key not in self.seen.deployments:
            return None
        return next_scale(self.states, limits(self.model.spec.rollout.strategy))

    def serving(self) -> RecordedRevision:
        """The newest of those that have most pods on the Service."""
        return self.revisions[max(reversed(self.states), key=lambda state: state.ready).key]

    def leftovers(self, keep: Collection[str]) -> Iterator[Copy]:
        """What revisions that are over leave behind; the records in `keep` may be wanted again."""
        over = {state.key for state in self.states if self._over(state)}
        unknown = self.seen.deployments.keys() - self.revisions.keys()
        idle = {key for key in unknown if not any(pod.ready for pod in self.seen.pods_of(key))}
        for key in sorted(over | idle):
            names = revision_names(self.owner, key)
            kinds = {"Deployment": names.deployment, "ConfigMap": names.schedule}
            if key not in keep:
                kinds["ControllerRevision"] = names.controller_revision
            for kind, name in kinds.items():
                copy = self.seen.copies.get(Reference(kind, self.owner.namespace, name))
                if copy is not None:
                    yield copy
        account = model_names(self.owner).service_account
        copy = self.seen.copies.get(Reference("ServiceAccount", self.owner.namespace, account))
        if copy is not None and account not in self._accounts():
            yield copy

    def _accounts(self) -> Collection[str]:
        """ServiceAccounts that pods of now or later have."""
        return {
            self.revisions[state.key].template["spec"]["serviceAccountName"]
            for state in self.states
            if not self._over(state)
        }

    def _over(self, state: RevisionState) -> bool:
        return state.gone and not self._is_last(state)

    def _is_last(self, state: RevisionState) -> bool:
        return state is self.states[-1]


def _metadata_only(config_map: Manifest) -> Manifest:
    """The tuner writes what is in it."""
    return {key: config_map[key] for key in ("apiVersion", "kind", "metadata")}


def _labels(seen: Observed) -> Iterator[tuple[Pod, str]]:
    """Pods on trial leave the Service before they are ready; all others belong to it."""
    for pod in seen.pods:
        on_trial = seen.verdict(pod.revision) == TRIAL
        wanted = "false" if on_trial else "true"
        if pod.alive and pod.serving_label != wanted and not (on_trial and pod.ready):
            yield pod, wanted


def _proven(seen: Observed, answering: Collection[str]) -> str | None:
    """A revision on trial of which a pod is ready and lists the served names."""
    passed = (
        pod.revision
        for pod in seen.pods
        if pod.alive
        and pod.ready
        and pod.incarnation in answering
        and seen.verdict(pod.revision) == TRIAL
    )
    return next(passed, None)


def _reference(kind: str, manifest: Manifest) -> Reference:
    metadata = manifest["metadata"]
    return Reference(kind, metadata["namespace"], metadata["name"])
