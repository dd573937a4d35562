"""The whole status of a model from what is desired, what stands and what the tuner says. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from speculative_operator.api.conditions import ConditionStatus, ConditionType, Reason
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.status import (
    MOST_REPLICA_DETAILS,
    ModelStatus,
    ReplicaDetail,
    Revisions,
)
from speculative_operator.controller.said.conditions import (
    PodFindings,
    conditions,
    hindrance,
    progressing,
    ready,
    rejection,
    warned,
    without_words,
)
from speculative_operator.controller.said.progress import Moment, look_closer
from speculative_operator.controller.said.tuning_status import (
    TUNING_CONDITIONS,
    TuningPart,
    tuning_part,
)
from speculative_operator.controller.seen.names_check import Answer
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.controller.seen.times import rfc3339
from speculative_operator.controller.tuner.ports import ReplicaView, TuningView
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.controller.wanted.policy import policy_of
from speculative_operator.controller.wanted.stand_ins import rejected
from speculative_operator.controller.wanted.variants import Pair
from speculative_operator.plan.capacity import Stock
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.plan.names import Owner
from speculative_operator.resources.metadata import pods_of
from speculative_operator.tuning.verdict import Verdict

NOTHING_RUNS = Verdict(
    ConditionStatus.UNKNOWN, Reason.NOT_ACCEPTED, "Nothing was started to be measured."
)

REFUSAL_CONDITIONS = (ConditionType.ACCEPTED, ConditionType.STALLED)


@dataclass(frozen=True)
class PassFindings:
    """What one pass has found besides the cluster's objects."""

    before: ModelStatus | None
    answers: Mapping[str, Answer]
    view: TuningView | None
    at: float
    """Unix time."""
    stock: Stock | None = None
    """Free GPUs, where they were counted."""

    @property
    def now(self) -> str:
        return rfc3339(self.at)


def status(
    model: SpeculativeModel, seen: Observed, desired: Desired, found: PassFindings
) -> ModelStatus:
    """What users read of the model."""
    serving = serving_pods(seen, desired, found)
    part = _tuning(model, seen, desired, found)
    pods = PodFindings(serving, found.answers, found.stock, found.at)
    cause = hindrance(seen, desired, pods)
    is_ready = ready(model.spec.replicas, desired, serving, cause)
    verdicts = {
        ConditionType.ACCEPTED: desired.accepted,
        ConditionType.READY: warned(is_ready, seen.pods),
        ConditionType.PROGRESSING: look_closer(
            progressing(seen, desired, serving),
            model.spec.rollout,
            seen,
            desired,
            Moment(
                now=found.at,
                before=found.before,
                generation=model.metadata.generation,
                hindrance=cause.message if cause is not None else None,
            ),
        ),
        **part.verdicts,
    }
    if (against := rejection(desired)) is not None:
        verdicts[ConditionType.STALLED] = against
    earlier = found.before.conditions if found.before is not None else ()
    return ModelStatus(
        observed_generation=model.metadata.generation,
        conditions=conditions(model.metadata.generation, verdicts, earlier, found.now),
        replicas=sum(pod.alive for pod in seen.pods),
        ready_replicas=len(serving),
        selector=",".join(f"{key}={value}" for key, value in pods_of(Owner.of(model)).items()),
        mode=part.mode,
        proposal_length=part.proposal_length,
        schedule=part.schedule,
        evidence=part.evidence,
        revisions=Revisions(
            current=desired.current.key if desired.current is not None else None,
            trial=_trial(seen, desired),
            last_good=_last_good(seen, desired, serving, found.before),
        ),
        replica_details=_details(seen, serving, part, found),
        decisions=part.decisions,
    )


def unread(before: ModelStatus | None, generation: int, refusal: Verdict, now: str) -> ModelStatus:
    """The status of a model whose stored spec cannot be read, so that nothing is done.

    What was said of the pods stands, as of the generation of which it was said.
    """
    nothing = Verdict(ConditionStatus.FALSE, Reason.NOT_ACCEPTED, refusal.message)
    verdicts = {
        ConditionType.ACCEPTED: refusal,
        ConditionType.READY: nothing,
        ConditionType.PROGRESSING: nothing,
        **dict.fromkeys(TUNING_CONDITIONS, NOTHING_RUNS),
    }
    earlier = {c.type: c for c in before.conditions} if before is not None else {}
    stands = {kind: c for kind, c in earlier.items() if kind not in REFUSAL_CONDITIONS}
    told = conditions(generation, verdicts, earlier.values(), now)
    last = before if before is not None else ModelStatus(observed_generation=generation)
    return last.model_copy(
        update={
            "observed_generation": generation,
            "conditions": tuple(stands.get(condition.type, condition) for condition in told),
        }
    )


def serving_pods(seen: Observed, desired: Desired, found: PassFindings) -> Collection[str]:
    """UIDs of pods that are routed to, list the served names and do not hang.

    While an engine was not asked yet, which is so after each start of the operator, what status
    said of its pod stands.
    """
    believed = {d.name for d in found.before.replica_details if d.ready} if found.before else set()
    return {
        pod.uid
        for pod in seen.pods
        if pod.routed
        and pod.uid not in desired.hung
        and (
            found.answers[pod.incarnation].problem is None
            if pod.incarnation in found.answers
            else pod.name in believed
        )
    }


def _last_good(
    seen: Observed, desired: Desired, serving: Collection[str], before: ModelStatus | None
) -> str | None:
    """The newest revision that has served and was not found bad."""
    told = before.revisions.last_good if before is not None else None
    served = {pod.revision for pod in seen.pods if pod.uid in serving} | {told}
    for state in reversed(desired.states):
        match seen.standing(state.key):
            case Standing.GOOD:
                return state.key
            case None if state.key in served:
                return state.key
    return None


def _trial(seen: Observed, desired: Desired) -> str | None:
    key = desired.current.key if desired.current is not None else None
    return key if key is not None and seen.standing(key) is Standing.TRIAL else None


def _tuning(
    model: SpeculativeModel, seen: Observed, desired: Desired, found: PassFindings
) -> TuningPart:
    if desired.serving is None:
        nothing = dict.fromkeys(TUNING_CONDITIONS, NOTHING_RUNS)
        return TuningPart(nothing, mode=None, proposal_length=None, schedule=())
    facts, pair = desired.serving.facts, desired.pair or Pair(desired.serving.key, None)
    policy = policy_of(model.spec, pair.tuned(facts))
    part = tuning_part(desired.serving, pair.speculative, policy, found.view, found.before)
    healthy = _crippled(facts, seen) or part.verdicts[ConditionType.SPECULATION_HEALTHY]
    kept = [words for uid, words in desired.kept.items() if uid not in desired.hung]
    if healthy.status is not ConditionStatus.TRUE:
        healthy = replace(healthy, message=" ".join((healthy.message, *kept)))
    return replace(part, verdicts={**part.verdicts, ConditionType.SPECULATION_HEALTHY: healthy})


def _crippled(facts: RevisionFacts, seen: Observed) -> Verdict | None:
    """That the serving revision only stands in for one that does not start with all of its
    speculation."""
    asked = facts.reduced_from or facts.stands_in_for
    why = rejected(asked, seen) if asked is not None else None
    if why is None:
        return None
    reason = Reason.REDUCED if facts.left_out else Reason.SPECULATION_FAILS
    message = f"Served without {without_words(facts)}, which keeps engines from starting. "
    return Verdict(ConditionStatus.FALSE, reason, message + why.message)


def _details(
    seen: Observed, serving: Collection[str], part: TuningPart, found: PassFindings
) -> tuple[ReplicaDetail, ...]:
    earlier = {d.name: d for d in found.before.replica_details} if found.before else {}
    alive = [pod for pod in seen.pods if pod.alive][:MOST_REPLICA_DETAILS]
    return tuple(
        _detail(pod, pod.uid in serving, _view(pod, part, found, earlier), found) for pod in alive
    )


def _view(
    pod: Pod, part: TuningPart, found: PassFindings, earlier: Mapping[str, ReplicaDetail]
) -> ReplicaView:
    """What the tuner knows of a pod; before its first word, what status said."""
    if found.view is None and pod.name in earlier:
        last = earlier[pod.name]
        return ReplicaView(last.tunable, last.schedule, last.message if last.ready else None)
    return part.replicas.get(pod.uid, ReplicaView())


def _detail(pod: Pod, serves: bool, view: ReplicaView, found: PassFindings) -> ReplicaDetail:
    answer = found.answers.get(pod.incarnation, Answer())
    return ReplicaDetail(
        name=pod.name,
        revision=pod.revision,
        ready=serves,
        tunable=view.tunable,
        schedule=view.schedule,
        message=pod.trouble.message if pod.trouble else answer.problem or view.message,
    )
