"""The trial of a revision: what follows from all that is known of its first pod. Pure.

It must start and answer, then give the same output as the running revision, then keep up with it
under a share of the traffic. What cannot be compared is not held against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from speculative_operator.api.conditions import Reason
from speculative_operator.api.trial import TrialMode, TrialSpec
from speculative_operator.plan.continuations import Agreement
from speculative_operator.tuning.contest import Contest

MOST_RESTARTS = 2
"""An engine that ended as often is not waited for any longer."""


@dataclass(frozen=True)
class NotCompared:
    """Why something is not compared, in a sentence."""

    words: str


@dataclass(frozen=True)
class Silent:
    """The engine on trial does not answer what the running one answers, in a sentence."""

    words: str


@dataclass(frozen=True)
class Hangs:
    """The engine on trial has requests and ends no step, or gives no page any more."""


@dataclass(frozen=True)
class NotReady:
    """Why a pod is not ready."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class TrialPod:
    """The first pod of the revision on trial.

    restarts   of its engine
    starting   seconds since its engine was started the last time, or before that since it got its
               node; None while it waits for one
    cause      why it is not ready, where anything tells
    answers    whether its engine lists the served names
    serving    seconds since requests reach it and its speed is compared, None while they do not
    admitted   it has passed so far that requests may reach it: it has started
    passes     what keeps it from starting may pass by itself, and is no matter of the revision
    beside     pods of another revision serve meanwhile, so it may take any time
    """

    restarts: int = 0
    starting: float | None = None
    cause: NotReady | None = None
    answers: bool = False
    serving: float | None = None
    admitted: bool = False
    passes: bool = False
    beside: bool = True


@dataclass(frozen=True)
class Wait:
    """Nothing is decided yet. `serve` says whether requests may reach the pod, `again_in` after how
    many seconds time alone decides."""

    message: str
    serve: bool = False
    again_in: float | None = None


@dataclass(frozen=True)
class Promote:
    """It is good: all other pods follow."""

    message: str
    reason: Reason | None = None


@dataclass(frozen=True)
class Reject:
    """It is bad: the last good revision runs again."""

    reason: Reason
    message: str


Ruling = Wait | Promote | Reject
Output = Agreement | Silent | NotCompared
Speed = Contest | NotCompared | Hangs


def rule(
    pod: TrialPod | None,
    spec: TrialSpec,
    patience: float,
    output: Output | None,
    speed: Speed | None,
) -> Ruling:
    """What follows. `patience` is how many seconds a pod may take from its start to an answer;
    `output` and `speed` are None while they are not known yet."""
    if pod is None or not pod.answers:
        return _starting(pod, spec, patience)
    if spec.mode is TrialMode.OFF:
        return Promote("It answers; rollout.trial.mode is Off, so nothing is compared.")
    if output is None:
        return Wait("Its output is being compared.")
    if isinstance(output, Silent):
        return Reject(Reason.DOES_NOT_ANSWER, output.words)
    if isinstance(output, Agreement) and not output.same:
        return Reject(Reason.OUTPUT_DIFFERS, output.words)
    return _compared(pod, spec, output.words, speed)


def _starting(pod: TrialPod | None, spec: TrialSpec, patience: float) -> Ruling:
    waits = Wait("Its first pod is being started.")
    if pod is None or (pod.passes and pod.beside) or spec.mode is TrialMode.OFF:
        return waits
    cause = pod.cause or NotReady(Reason.NEVER_READY, "Its engine does not get ready.")
    if pod.restarts >= MOST_RESTARTS and not pod.passes:
        return Reject(
            cause.reason, f"Its engine ended {pod.restarts} times at its start. {cause.message}"
        )
    if pod.starting is None or pod.admitted:
        return waits
    left = patience - pod.starting
    if left <= 0:
        return Reject(
            cause.reason,
            f"It did not answer within {patience:.0f} s of its start. {cause.message}",
        )
    return Wait(waits.message, again_in=left)


def _compared(pod: TrialPod, spec: TrialSpec, output: str, speed: Speed | None) -> Ruling:
    if isinstance(speed, NotCompared):
        return Promote(f"{output} {speed.words}", Reason.SPEED_NOT_MEASURED)
    if isinstance(speed, Hangs):
        words = "Its engine hangs: for a minute it has ended no step, or given no page."
        return Reject(Reason.ENGINE_HANGS, words)
    least = math.log1p(-spec.max_slowdown_percent / 100)
    if isinstance(speed, Contest):
        if speed.at_most < least:
            return Reject(
                Reason.TOO_SLOW,
                "With 95 % confidence it loses more than "
                f"{-math.expm1(speed.at_most):.0%} of the goodput at the same batch size, at "
                f"K={speed.length}, its best; rollout.trial.maxSlowdownPercent allows "
                f"{spec.max_slowdown_percent} %.",
            )
        if speed.at_least > least:
            return Promote(
                f"{output} It keeps up: with 95 % confidence its goodput at the same batch size is "
                f"more than {math.exp(speed.at_least):.2f} times the running revision's, at "
                f"K={speed.length}."
            )
    if pod.serving is not None and pod.serving >= spec.timeout_seconds:
        return Promote(
            f"{output} Its speed was not known for sure after {spec.timeout_seconds} s.",
            Reason.SPEED_NOT_MEASURED,
        )
    left = spec.timeout_seconds - pod.serving if pod.serving is not None else None
    return Wait(f"{output} Its speed is being compared.", serve=True, again_in=left)
