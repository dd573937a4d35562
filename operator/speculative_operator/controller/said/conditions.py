"""The conditions that reconcile decides: Accepted, Ready, Progressing, and those for kstatus.

Pure. The tuner decides SpeculationHealthy and Tuned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from speculative_operator.api.conditions import (
    STALLED_FOR_NOW,
    START_FAILURES,
    ConditionStatus,
    ConditionType,
    Reason,
)
from speculative_operator.api.names import ANNOTATION_REFRESH
from speculative_operator.api.status import Condition
from speculative_operator.api.trial import TrialMode
from speculative_operator.controller.said.progress import hangs
from speculative_operator.controller.seen.names_check import Answer
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod, Trouble
from speculative_operator.controller.seen.waiting import FOR_GPUS, waiting
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.controller.wanted.start_failures import trouble_of
from speculative_operator.plan.capacity import Stock
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.tuning.verdict import Verdict

EARLIEST_FIRST = (
    Reason.PODS_NOT_CREATED,
    Reason.POD_NOT_ENDING,
    Reason.WAITING_FOR_GPUS,
    Reason.NO_NODE_FITS,
    Reason.UNSCHEDULABLE,
    Reason.IMAGE_UNAVAILABLE,
    *START_FAILURES,
    Reason.ENGINE_HANGS,
    Reason.NAME_NOT_SERVED,
)


@dataclass(frozen=True)
class PodFindings:
    """What one pass knows of pods besides their own status.

    serving  UIDs of pods that are ready, routed and list the served names
    answers  what engines answered, by incarnation
    stock    free GPUs, where they were counted
    now      Unix time
    """

    serving: Collection[str]
    answers: Mapping[str, Answer]
    stock: Stock | None
    now: float


def ready(
    wanted: int, desired: Desired, serving: Collection[str], cause: Trouble | None
) -> Verdict:
    """Whether every wanted replica serves; if not, the `cause` in its own words.

    A parked model is Ready: none is wanted, and a GitOps tool would wait for one for ever.
    """
    if desired.current is None:
        return Verdict(ConditionStatus.FALSE, Reason.NOT_ACCEPTED, desired.accepted.message)
    if wanted == 0:
        return Verdict(ConditionStatus.TRUE, Reason.SCALED_TO_ZERO, "spec.replicas is 0.")
    if len(serving) >= wanted:
        return Verdict(
            ConditionStatus.TRUE,
            Reason.SERVING,
            "All replicas are ready and list the served names.",
        )
    if desired.stopped and (found := rejection(desired)) is not None:
        return _as_false(found)
    if cause is None:
        return Verdict(ConditionStatus.FALSE, Reason.STARTING, "Engines are being started.")
    return Verdict(ConditionStatus.FALSE, cause.reason, cause.message)


def warned(verdict: Verdict, pods: Iterable[Pod]) -> Verdict:
    """Ready, with the pods that may not be so for long."""
    if verdict.status is not ConditionStatus.TRUE:
        return verdict
    doubtful = (
        f" Pod {pod.name} runs on what its device plugin calls unhealthy on node {pod.node}: "
        f"{pod.unhealthy}. Delete the pod where another GPU is free; the operator does so once its "
        "engine ends."
        for pod in pods
        if pod.alive and pod.unhealthy is not None
    )
    return Verdict(verdict.status, verdict.reason, verdict.message + "".join(doubtful))


def hindrance(seen: Observed, desired: Desired, found: PodFindings) -> Trouble | None:
    """What keeps pods from serving, the earliest cause first."""
    troubles = _troubles(seen, desired, found)
    return min(troubles, key=lambda found: EARLIEST_FIRST.index(found.reason), default=None)


def progressing(seen: Observed, desired: Desired, serving: Collection[str]) -> Verdict:
    """Whether pods are being started, replaced or removed. A parked model has no rollout: nothing
    is on trial, and nothing follows."""
    if desired.current is None:
        return Verdict(ConditionStatus.FALSE, Reason.NOT_ACCEPTED, desired.accepted.message)
    *older, current = desired.states
    wanted = sum(state.wanted for state in desired.states)
    probation = desired.probation if wanted else None
    if probation is not None and probation.spec.mode is TrialMode.AUTO:
        message = f"Revision {current.key} is on trial. {probation.ruling.message}"
        return Verdict(ConditionStatus.TRUE, Reason.ON_TRIAL, message)
    replaces = wanted > 0 and any(state.holding > state.wanted for state in older)
    if probation is not None or replaces:
        return Verdict(
            ConditionStatus.TRUE,
            Reason.ROLLING_OUT,
            f"Pods of other revisions are being replaced by revision {current.key}.",
        )
    alive = sum(pod.alive for pod in seen.pods)
    as_wanted = all(s.wanted == s.replicas and not s.terminating for s in desired.states)
    if alive == len(serving) == wanted and as_wanted:
        found = rejection(desired)
        if found is not None:
            return _as_false(found)
        return Verdict(ConditionStatus.FALSE, Reason.SETTLED, "What runs is what is wanted.")
    return Verdict(ConditionStatus.TRUE, Reason.SCALING, "Replicas are being started or removed.")


def rejection(desired: Desired) -> Verdict | None:
    """Stalled, if the revision that the spec asks for was rejected: why, and what runs."""
    found, current = desired.rejected, desired.current
    if found is None or current is None:
        return None
    instead = without_words(current.facts)
    runs = f"It is served without {instead}." if instead else f"Revision {current.key} runs."
    if desired.stopped:
        runs = "No pods are started."
    # Why comes last, since it may end in an engine's own words.
    return Verdict(
        ConditionStatus.TRUE,
        found.reason or Reason.REJECTED,
        f"What the spec asks for was rejected. {runs} Change what pods are started with, or set "
        f"the annotation {ANNOTATION_REFRESH} to another value to try the same once more, also "
        f"after a change under spec.rollout. {found.message}",
    )


def without_words(facts: RevisionFacts) -> str:
    """What a stand-in leaves out, as a user knows it; empty for all other revisions."""
    if facts.left_out:
        return ", ".join(f"speculation.options.{to_camel(name)}" for name in facts.left_out)
    return "speculation" if facts.stands_in_for is not None else ""


def conditions(
    generation: int,
    verdicts: Mapping[ConditionType, Verdict],
    before: Iterable[Condition],
    now: str,
) -> tuple[Condition, ...]:
    """All conditions, with the time of the last change of each one's status."""
    earlier = {condition.type: condition for condition in before}
    return tuple(
        Condition(
            type=kind,
            status=verdict.status,
            reason=verdict.reason,
            message=verdict.message,
            observed_generation=generation,
            last_transition_time=(
                earlier[kind].last_transition_time
                if kind in earlier and earlier[kind].status is verdict.status
                else now
            ),
        )
        for kind, verdict in {**verdicts, **_for_kstatus(verdicts)}.items()
    )


def _for_kstatus(verdicts: Mapping[ConditionType, Verdict]) -> dict[ConditionType, Verdict]:
    """Present only while True: Stalled repeats what the user must end, Reconciling the rest, and
    why it does not serve yet where that is known."""
    accepted = verdicts[ConditionType.ACCEPTED]
    moving = verdicts[ConditionType.PROGRESSING]
    serves = verdicts[ConditionType.READY]
    if accepted.status is ConditionStatus.FALSE:
        return {ConditionType.STALLED: _as_true(accepted)}
    if moving.reason in STALLED_FOR_NOW:
        return {ConditionType.STALLED: _as_true(moving)}
    if moving.status is ConditionStatus.TRUE:
        hindered = serves.status is ConditionStatus.FALSE and serves.reason != Reason.STARTING
        return {ConditionType.RECONCILING: _as_true(serves) if hindered else moving}
    return {}


def _as_false(verdict: Verdict) -> Verdict:
    return Verdict(ConditionStatus.FALSE, verdict.reason, verdict.message)


def _as_true(verdict: Verdict) -> Verdict:
    return Verdict(ConditionStatus.TRUE, verdict.reason, verdict.message)


def _troubles(seen: Observed, desired: Desired, found: PodFindings) -> Iterator[Trouble]:
    for deployment in seen.deployments.values():
        if deployment.failure is not None:
            yield Trouble(Reason.PODS_NOT_CREATED, deployment.failure.message)
    for text in hangs(seen.pods, found.now):
        yield Trouble(Reason.POD_NOT_ENDING, text)
    yield from waiting(seen, found.stock)
    alive = [pod for pod in seen.pods if pod.alive]
    for pod in alive or seen.pods:
        if pod.uid not in found.serving and not pod.terminating:
            yield from _trouble(pod, seen, found.answers)
        if pod.alive and pod.uid in desired.hung:
            words = (desired.hung[pod.uid], desired.kept.get(pod.uid, ""))
            yield Trouble(Reason.ENGINE_HANGS, " ".join(filter(None, words)))


def _trouble(pod: Pod, seen: Observed, answers: Mapping[str, Answer]) -> Iterator[Trouble]:
    trouble = trouble_of(pod, seen)
    if trouble is not None and trouble.reason not in FOR_GPUS:
        yield trouble
    answer = answers.get(pod.incarnation)
    if answer is not None and answer.problem is not None:
        yield Trouble(Reason.NAME_NOT_SERVED, answer.problem)
