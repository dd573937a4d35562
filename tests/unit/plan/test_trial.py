"""What follows from all that is known of a revision on trial."""

from __future__ import annotations

import math

import pytest

from speculative_operator.api.conditions import Reason
from speculative_operator.api.trial import TrialMode, TrialSpec
from speculative_operator.plan.continuations import Agreement
from speculative_operator.plan.trial import (
    Hangs,
    NotCompared,
    NotReady,
    Promote,
    Reject,
    Ruling,
    Silent,
    Speed,
    TrialPod,
    Wait,
    rule,
)
from speculative_operator.tuning.contest import Contest

PATIENCE = 100.0
SAME = Agreement(prompts=6, steady=6, agreed=6)
OTHER = Agreement(prompts=6, steady=6, agreed=2)
ANSWERS = TrialPod(starting=50.0, answers=True, serving=10.0)
NO_TRAFFIC = NotCompared("Speed is not compared: there are no requests.")


def ruled(
    pod: TrialPod | None = ANSWERS,
    *,
    output: Agreement | Silent | NotCompared | None = SAME,
    speed: Speed | None = None,
    spec: TrialSpec | None = None,
) -> Ruling:
    """The ruling, where the pod answers and its output is the same if nothing else is said."""
    return rule(pod, spec or TrialSpec(), PATIENCE, output, speed)


@pytest.mark.parametrize(
    "pod",
    [
        None,
        TrialPod(),
        TrialPod(starting=99.0),
        TrialPod(restarts=1, starting=10.0),
        TrialPod(starting=999.0, admitted=True),
        TrialPod(4, 9999.0, NotReady(Reason.MODEL_UNAVAILABLE, "no hub"), passes=True),
        TrialPod(4, 9.0, NotReady(Reason.MODEL_UNAVAILABLE, "no hub"), passes=True, beside=False),
    ],
    ids=[
        "no pod",
        "no node",
        "loading",
        "ended once",
        "not ready for a moment",
        "no hub",
        "no hub for a moment and nothing else serves",
    ],
)
def test_a_pod_that_starts_is_waited_for(pod: TrialPod | None) -> None:
    """Waiting for a GPU is no fault of the revision, nor what may pass by itself, and one end may
    be chance."""
    ruling = ruled(pod)

    assert isinstance(ruling, Wait)
    assert not ruling.serve


def test_an_outage_is_not_waited_out_where_nothing_else_serves() -> None:
    """What served before comes back: it may have all that it needs on its node."""
    no_hub = NotReady(Reason.MODEL_UNAVAILABLE, "no hub")

    ruling = ruled(TrialPod(4, 9999.0, no_hub, passes=True, beside=False))

    assert isinstance(ruling, Reject)
    assert ruling.reason is Reason.MODEL_UNAVAILABLE


def test_time_alone_ends_a_start() -> None:
    """So somebody has to look again then."""
    ruling = ruled(TrialPod(starting=60.0))

    assert isinstance(ruling, Wait)
    assert ruling.again_in == 40.0


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (TrialPod(restarts=2, starting=10.0), Reason.NEVER_READY),
        (TrialPod(starting=100.0), Reason.NEVER_READY),
        (
            TrialPod(2, 10.0, NotReady(Reason.CONTAINER_FAILED, "exit code 1")),
            Reason.CONTAINER_FAILED,
        ),
        (
            TrialPod(0, 100.0, NotReady(Reason.NAME_NOT_SERVED, "another name")),
            Reason.NAME_NOT_SERVED,
        ),
    ],
)
def test_an_engine_that_does_not_start_is_rejected_by_its_own_cause(
    pod: TrialPod, reason: Reason
) -> None:
    """Early where it ends again and again, else when it had its time."""
    ruling = ruled(pod)

    assert isinstance(ruling, Reject)
    assert ruling.reason is reason
    assert (pod.cause.message if pod.cause else "") in ruling.message


def test_requests_do_not_reach_a_pod_whose_output_is_not_known() -> None:
    """It could be wrong."""
    assert ruled(output=None) == Wait("Its output is being compared.")


def test_another_output_is_rejected() -> None:
    """With both agreements in the message."""
    ruling = ruled(output=OTHER)

    assert isinstance(ruling, Reject)
    assert ruling.reason is Reason.OUTPUT_DIFFERS
    assert "2 of these" in ruling.message


def test_an_engine_that_lists_its_model_and_answers_nothing_is_rejected() -> None:
    """The running one was asked the same and answered."""
    ruling = ruled(output=Silent("/v1/completions answered 500."))

    assert isinstance(ruling, Reject)
    assert ruling.reason is Reason.DOES_NOT_ANSWER


def test_once_its_output_is_the_same_it_gets_its_share_of_requests() -> None:
    """Speed can only be seen under traffic."""
    ruling = ruled()

    assert isinstance(ruling, Wait)
    assert ruling.serve
    assert ruling.again_in == 590.0


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (Contest(4, at_least=math.log(0.95), at_most=math.log(1.2)), Promote),
        (Contest(4, at_least=math.log(1.5), at_most=math.log(2.0)), Promote),
        (Contest(4, at_least=math.log(0.85), at_most=math.log(1.1)), Wait),
        (Contest(), Wait),
        (Contest(4, at_least=math.log(0.5), at_most=math.log(0.8)), Reject),
        (Contest(4, at_least=math.log(0.5), at_most=math.log(0.92)), Wait),
    ],
)
def test_only_what_is_sure_decides_on_speed(speed: Contest, expected: type) -> None:
    """A doubt is no evidence in either direction."""
    assert isinstance(ruled(speed=speed), expected)


def test_an_engine_that_hangs_under_requests_is_not_waited_for_until_it_is_promoted() -> None:
    """It answered the prompts of the trial, and then no more."""
    ruling = ruled(speed=Hangs())

    assert isinstance(ruling, Reject)
    assert ruling.reason is Reason.ENGINE_HANGS


def test_the_allowed_slowdown_is_the_users() -> None:
    """A revision may cost speed on purpose."""
    speed = Contest(4, at_least=math.log(0.5), at_most=math.log(0.8))
    ruling = ruled(speed=speed, spec=TrialSpec(max_slowdown_percent=60))

    assert isinstance(ruling, Promote)
    assert ruling.reason is None


@pytest.mark.parametrize(
    ("pod", "speed"),
    [
        (ANSWERS, NO_TRAFFIC),
        (TrialPod(answers=True, serving=600.0), None),
        (TrialPod(answers=True, serving=600.0), Contest()),
    ],
    ids=["no traffic", "nothing known in time", "nothing sure in time"],
)
def test_what_is_not_measured_is_not_held_against_it(pod: TrialPod, speed: Speed | None) -> None:
    """Else a model without traffic could never be changed. The verdict says so."""
    ruling = ruled(pod, speed=speed)

    assert isinstance(ruling, Promote)
    assert ruling.reason is Reason.SPEED_NOT_MEASURED
    assert SAME.words in ruling.message


def test_an_output_that_cannot_be_compared_is_told_and_not_held_against_it() -> None:
    """For example behind an API key."""
    ruling = ruled(output=NotCompared("It wants a key."), speed=NO_TRAFFIC)

    assert isinstance(ruling, Promote)
    assert "It wants a key." in ruling.message


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (TrialPod(restarts=9, starting=9000.0), Wait),
        (TrialPod(answers=True), Promote),
    ],
)
def test_without_trials_only_the_start_is_waited_for(pod: TrialPod, expected: type) -> None:
    """Nothing is compared, and no start takes too long."""
    assert isinstance(ruled(pod, output=OTHER, spec=TrialSpec(mode=TrialMode.OFF)), expected)
