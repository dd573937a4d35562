"""Revisions on trial: where another one serves, a new one has to prove itself on one pod. Pure.

Everything is read off what stands, so a new operator goes on where the last one was: it asks the
engine on trial again, and begins a new comparison of speed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from speculative_operator.api.conditions import Reason
from speculative_operator.api.trial import TrialMode, TrialSpec
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.controller.trials.checks import Case, Findings
from speculative_operator.controller.trials.questions import Served
from speculative_operator.controller.wanted.start_failures import failure_of, trouble_of
from speculative_operator.plan.continuations import ReferenceOutput, agreement
from speculative_operator.plan.facts import STARTUP_SPARE_SECONDS, RevisionFacts
from speculative_operator.plan.sameness import output_incomparable, speed_incomparable
from speculative_operator.plan.trial import (
    NotCompared,
    NotReady,
    Output,
    Promote,
    Reject,
    Ruling,
    Silent,
    Speed,
    TrialPod,
    Wait,
    rule,
)

NOTHING_TO_COMPARE = "No other revision runs, so there is nothing to compare it with."


@dataclass(frozen=True)
class Known:
    """What is known besides the cluster's objects: Unix time, the incarnations of pods that list
    the served names, what the checks have found, and the UIDs of pods whose engines hang."""

    now: float
    answering: Collection[str]
    findings: Findings | None
    hung: Collection[str]


@dataclass(frozen=True)
class Probation:
    """The trial of the revision `key`, beside or instead of the revision `running`."""

    seen: Observed
    spec: TrialSpec
    known: Known
    key: str
    running: str | None
    arms: tuple[int, ...]

    @cached_property
    def ruling(self) -> Ruling:
        """What follows now."""
        facts = self._facts(self.key)
        patience = facts.startup_seconds + STARTUP_SPARE_SECONDS
        return rule(self._trial_pod(), self.spec, patience, self._output(), self._speed())

    def verdict(self, at: str) -> RevisionVerdict | None:
        """What was found out, once something was."""
        match self.ruling:
            case Promote(message, reason):
                return RevisionVerdict(Standing.GOOD, at, reason, message)
            case Reject(reason, message):
                return RevisionVerdict(Standing.BAD, at, reason, message)
        return None

    @property
    def reference(self) -> ReferenceOutput | None:
        """The running revision's answers that are not recorded yet."""
        recorded = self.seen.revisions[self.key].reference
        return self._findings.reference if recorded is None else None

    @property
    def waits_for_reference(self) -> bool:
        """Whether the running revision must stay as it is, since it is still to be asked."""
        return self.case.reference and self._findings.reference is None

    @property
    def serves(self) -> bool:
        """Whether requests may reach its pod."""
        ruling = self.ruling
        return isinstance(ruling, Wait) and ruling.serve

    @property
    def again_in(self) -> float | None:
        """After how many seconds time alone decides."""
        ruling = self.ruling
        return ruling.again_in if isinstance(ruling, Wait) else None

    @cached_property
    def case(self) -> Case:
        """What is to be found out now."""
        pod, running = self._pod, self._served(self.running)
        answers = pod is not None and pod.incarnation in self.known.answering
        compares = self.spec.mode is TrialMode.AUTO and self._output_incomparable is None
        recorded = self.seen.revisions[self.key].reference
        on_service = answers and pod is not None and pod.routed
        return Case(
            key=self.key,
            running=running,
            reference=compares and recorded is None and bool(running.replicas),
            new=_served((pod,) if pod is not None else (), self._facts(self.key)),
            incarnation=pod.incarnation if answers and pod is not None else None,
            said=self._reference if compares and self._is_known(self._reference) else None,
            arms=self.arms if on_service and self._speed_incomparable is None else (),
        )

    @staticmethod
    def _is_known(reference: ReferenceOutput | None) -> bool:
        return reference is not None and not reference.missing

    @property
    def _findings(self) -> Findings:
        """Of the revision and the start of its engine that are on trial now."""
        found = self.known.findings
        if found is None or found.key != self.key:
            return Findings(self.key)
        return found

    @property
    def _pod(self) -> Pod | None:
        alive = (pod for pod in self.seen.pods_of(self.key) if pod.alive)
        return max(alive, key=lambda pod: (pod.ready, pod.scheduled is not None), default=None)

    def _trial_pod(self) -> TrialPod | None:
        pod = self._pod
        if pod is None:
            return None
        same = self._findings.incarnation == pod.incarnation
        since = self._findings.since if same and pod.routed else None
        began = pod.started or pod.scheduled
        return TrialPod(
            restarts=pod.restarts,
            starting=None if began is None else self.known.now - began,
            cause=_cause(pod, self.seen),
            answers=pod.incarnation in self.known.answering,
            serving=None if since is None else self.known.now - since,
            admitted=pod.serving_label == "true",
            passes=_passes(pod, self.seen),
            beside=any(self._serves(pod) for pod in self.seen.pods if pod.revision != self.key),
        )

    def _facts(self, key: str) -> RevisionFacts:
        return self.seen.revisions[key].recorded.facts

    def _served(self, key: str | None) -> Served:
        """The pods of a revision that answer requests. One that hangs would only be waited for."""
        if key is None:
            return Served((), "")
        answer = (pod for pod in self.seen.pods_of(key) if self._serves(pod))
        return _served(answer, self._facts(key))

    def _serves(self, pod: Pod) -> bool:
        return pod.routed and pod.uid not in self.known.hung

    @property
    def _reference(self) -> ReferenceOutput | None:
        return self.seen.revisions[self.key].reference or self._findings.reference

    @property
    def _output_incomparable(self) -> str | None:
        if self.running is None:
            return NOTHING_TO_COMPARE
        return output_incomparable(self._facts(self.running), self._facts(self.key))

    @property
    def _speed_incomparable(self) -> str | None:
        if self.running is None:
            return NOTHING_TO_COMPARE
        why = speed_incomparable(self._facts(self.running), self._facts(self.key))
        beside = any(pod.alive for pod in self.seen.pods_of(self.running))
        if why is None and not beside:
            return "Speed is not compared: no pod of the last revision is left beside it."
        return why

    def _output(self) -> Output | None:
        if self._output_incomparable is not None:
            return NotCompared(self._output_incomparable)
        reference, answers = self._reference, self._findings.answers
        if reference is None:
            asked = self._served(self.running).replicas
            return None if asked else NotCompared("Output is not compared: nothing else serves.")
        if reference.missing:
            return NotCompared(reference.missing)
        if answers is None or self._findings.incarnation != self.case.incarnation:
            return None
        if isinstance(answers, Silent | NotCompared):
            return answers
        return agreement(reference, answers, self.spec.tolerance)

    def _speed(self) -> Speed | None:
        if self._speed_incomparable is not None:
            return NotCompared(self._speed_incomparable)
        same = self._findings.incarnation == self.case.incarnation
        return self._findings.speed if same else None


def _passes(pod: Pod, seen: Observed) -> bool:
    """Whether network, node, device or registry keep it from starting: they may come back after
    any time, and a bad revision is never tried again."""
    failure = failure_of(pod, seen)
    if failure is not None and failure.cause.passes:
        return True
    return pod.trouble is not None and pod.trouble.reason is Reason.IMAGE_UNAVAILABLE


def _cause(pod: Pod, seen: Observed) -> NotReady | None:
    trouble = trouble_of(pod, seen)
    return NotReady(trouble.reason, trouble.message) if trouble is not None else None


def _served(pods: Iterable[Pod], facts: RevisionFacts) -> Served:
    return Served(tuple(pod.replica for pod in pods), facts.served_names[0])
