"""What should stand in the cluster for one model: plan and build, pure.

Everything follows from the spec and from what is observed; nothing is remembered between passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.cache import Copy
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict
from speculative_operator.controller.seen.times import rfc3339
from speculative_operator.controller.trials.marks import recordable, serving_labels
from speculative_operator.controller.wanted.leftovers import leftovers
from speculative_operator.controller.wanted.policy import (
    policy_of,
    start_text,
    trial_text,
)
from speculative_operator.controller.wanted.probation import Probation
from speculative_operator.controller.wanted.rollout_aim import RolloutAim
from speculative_operator.controller.wanted.start_failures import not_to_start, to_move
from speculative_operator.controller.wanted.surging import worth_counting
from speculative_operator.controller.wanted.told import Told
from speculative_operator.controller.wanted.variants import Pair, current, pair_of
from speculative_operator.plan.continuations import ReferenceOutput
from speculative_operator.plan.memory import tightness
from speculative_operator.plan.rollout import RevisionState
from speculative_operator.plan.settings import Settings
from speculative_operator.plan.surge import Way
from speculative_operator.resources.config_maps import memory_configmap, schedule_configmap
from speculative_operator.resources.controller_revision import RecordedRevision
from speculative_operator.resources.deployment import deployment
from speculative_operator.resources.service import service
from speculative_operator.resources.service_account import service_account
from speculative_operator.tuning.verdict import Verdict


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
    first_to_go  those of their pods that are to be marked, so that a step takes no sound one
    kept         why pods that are to go stay, by UID, as the API server has it
    labels       pods whose `serving` label should have the other value
    found        what was found out about revisions in this pass, by key
    probation    the trial of the current revision, while it is on trial
    reference    what the running revision answered, to be recorded with the one on trial
    rejected     why the revision that the spec asks for should not run
    stopped      no start of the current revision can succeed, so it gets no new pods
    states       the revisions as the rollout counts them, the current one last
    way          how the rollout goes on
    in_place     what records are to say of going in place, by key; None: nothing any more
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
    first_to_go: tuple[Pod, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[tuple[Pod, str], ...] = ()
    found: tuple[tuple[str, RevisionVerdict], ...] = ()
    probation: Probation | None = None
    reference: tuple[str, ReferenceOutput] | None = None
    rejected: RevisionVerdict | None = None
    stopped: bool = False
    states: tuple[RevisionState, ...] = ()
    way: Way | None = None
    in_place: tuple[tuple[str, str | None], ...] = ()
    counts: bool = False


def desire(model: SpeculativeModel, seen: Observed, settings: Settings, told: Told) -> Desired:
    """What to aim at."""
    accepted, wanted = current(model, seen, settings, told.choice, told.last_good)
    if wanted is None:
        return Desired(accepted)
    aim = RolloutAim(model, seen, wanted, told)
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
        before_pods=tuple(_before_pods(aim)),
        pods=tuple(_pods(aim)),
        leftovers=tuple(leftovers(aim, keep=pair_of(good[-1], seen).keys if good else ())),
        replaced=tuple(_replaced(seen, told)),
        hung=told.hung,
        first_to_go=tuple(
            pod
            for pod in seen.pods
            if pod.alive and pod.uid in told.hung and pod.deletion_cost is None
        ),
        labels=tuple(serving_labels(seen, key, serves=probation is not None and probation.serves)),
        found=tuple({**ruled, **dict(not_to_start(seen, good, now))}.items()),
        probation=probation,
        reference=(key, reference) if reference is not None else None,
        rejected=wanted.rejected,
        stopped=wanted.stopped,
        states=aim.states,
        way=aim.way,
        in_place=tuple(aim.in_place()),
        counts=worth_counting(model.spec.rollout, aim.rollout, seen),
    )


def _replaced(seen: Observed, told: Told) -> Iterator[Pod]:
    """Those that the user lets the operator replace, and those that can start nowhere but where a
    device is unhealthy."""
    going = {*told.replace, *(pod.uid for pod in to_move(seen))}
    return (pod for pod in seen.pods if pod.alive and pod.uid in going)


def _before_pods(aim: RolloutAim) -> Iterator[Manifest]:
    """The Service is among them so that a taken name is found before a GPU is."""
    account = service_account(aim.owner, aim.model.spec.runtime)
    if account is not None:
        yield account
    yield service(aim.owner, aim.model.spec.service)
    if aim.budget is not None:
        yield aim.budget
    yield _metadata_only(memory_configmap(aim.owner, {}, {}))
    for state in aim.states:
        facts = aim.revisions[state.key].facts
        if facts.schedule and not aim.over(state):
            policy = policy_of(aim.model.spec, facts)
            start = trial_text(policy) if aim.unproven(state.key) else start_text(policy)
            text = aim.seen.schedules.get(state.key) or start
            config_map = schedule_configmap(aim.owner, state.key, text)
            stands = _reference("ConfigMap", config_map) in aim.seen.copies
            yield _metadata_only(config_map) if stands else config_map


def _pods(aim: RolloutAim) -> Iterator[Manifest]:
    scale = aim.scale()
    for state in aim.states:
        stands = state.key in aim.seen.deployments
        if aim.is_last(state) or state.wanted or (stands and not aim.over(state)):
            replicas = (
                scale.replicas if scale is not None and scale.key == state.key else state.replicas
            )
            yield deployment(aim.owner, aim.revisions[state.key], replicas)


def _metadata_only(config_map: Manifest) -> Manifest:
    """The tuner writes what is in it."""
    return {key: config_map[key] for key in ("apiVersion", "kind", "metadata")}


def _reference(kind: str, manifest: Manifest) -> Reference:
    metadata = manifest["metadata"]
    return Reference(kind, metadata["namespace"], metadata["name"])
