"""SpeculationHealthy and Tuned, and what is laid over them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import REASONS, ConditionStatus, ConditionType, Reason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.aging import Aging
from speculative_operator.tuning.conditions import Situation, health, overlaid, tuned
from speculative_operator.tuning.policy import Policy, RestartLimits
from speculative_operator.tuning.standings import Replicas, Sign, Standing
from speculative_operator.tuning.state import State
from speculative_operator.tuning.suspicion import Suspicion
from speculative_operator.tuning.variant import Restart, Variant
from speculative_operator.tuning.verdict import Verdict
from speculative_operator.tuning.window import NoEvidence
from tests.support.windows import Traffic, a_policy, course

GOOD = (0.97, 0.95, 0.93, 0.91)
DEAD = (0.0, 0.0, 0.0, 0.0)
DEAR = {0: 9.6, 1: 40.0, 2: 44.0, 3: 48.0, 4: 52.0}


def after(traffic: Traffic, windows: int, **policy: object) -> tuple[State, Policy]:
    wanted = a_policy(**policy)
    return course(wanted, [traffic] * windows)[-1].state, wanted


def verdicts(traffic: Traffic, windows: int, **policy: object) -> tuple[Verdict, Verdict]:
    state, wanted = after(traffic, windows, **policy)
    return health(state, wanted), tuned(state, wanted)


@pytest.mark.parametrize(
    ("traffic", "windows", "policy", "healthy", "best"),
    [
        (Traffic(GOOD), 1, {}, Reason.HEALTHY, Reason.MEASURING),
        (Traffic(GOOD), 30, {}, Reason.HEALTHY, Reason.BEST_MEASURED),
        (Traffic(GOOD, DEAR), 30, {}, Reason.PAUSED, Reason.BEST_MEASURED),
        (Traffic(DEAD), 5, {}, Reason.NO_ACCEPTANCE, Reason.NO_ACCEPTANCE),
        (Traffic(GOOD), 5, {"low": 2, "high": 2}, Reason.HEALTHY, Reason.PINNED),
        (Traffic(GOOD), 5, {"mode": TuningMode.OFF}, Reason.HEALTHY, Reason.TUNING_OFF),
        (Traffic(), 9, {"mode": TuningMode.RECOMMEND}, Reason.HEALTHY, Reason.RECOMMENDATION),
        (Traffic(GOOD), 9, {"trial_share": 0.0}, Reason.HEALTHY, Reason.NO_TRIALS),
    ],
)
def test_what_is_told_of_each_situation(
    traffic: Traffic, windows: int, policy: dict[str, object], healthy: Reason, best: Reason
) -> None:
    """Users act upon these two words."""
    told = verdicts(traffic, windows, **policy)

    assert (told[0].reason, told[1].reason) == (healthy, best)


def test_before_any_window_nothing_is_claimed() -> None:
    """Unknown is neither healthy nor faulty."""
    state, policy = State(table=((1, 64, 4),)), a_policy()

    assert health(state, policy).status is ConditionStatus.UNKNOWN
    assert tuned(state, policy).status is ConditionStatus.UNKNOWN


def test_messages_have_no_running_numbers() -> None:
    """A number that changes every window would write the status every window."""
    policy = a_policy()
    told = {
        (decision.healthy.message, decision.tuned.message)
        for decision in course(policy, [Traffic(GOOD)] * 100)[40:]
    }

    assert len(told) == 1


def test_every_reason_is_one_of_its_condition() -> None:
    """The reference page lists them."""
    for traffic in (Traffic(GOOD), Traffic(DEAD), Traffic(GOOD, DEAR), Traffic()):
        for windows in (1, 3, 30):
            healthy, best = verdicts(traffic, windows)
            assert healthy.reason in REASONS[ConditionType.SPECULATION_HEALTHY]
            assert best.reason in REASONS[ConditionType.TUNED]


UNREACHABLE = NoEvidence(Reason.METRICS_UNREACHABLE, "no answer within 3 s")


@pytest.mark.parametrize(
    ("situation", "status", "reason"),
    [
        (Situation(), ConditionStatus.TRUE, Reason.BEST_MEASURED),
        (Situation(gap=UNREACHABLE), ConditionStatus.UNKNOWN, Reason.METRICS_UNREACHABLE),
        (
            Situation(gap=NoEvidence(Reason.NOT_ENOUGH_DRAFTS, "too few drafts")),
            ConditionStatus.TRUE,
            Reason.BEST_MEASURED,
        ),
        (Situation(not_tunable="suffix"), ConditionStatus.FALSE, Reason.NOT_TUNABLE),
        (Situation(unscheduled=True), ConditionStatus.FALSE, Reason.RESTART_NEEDED),
        (Situation(applying=True), ConditionStatus.FALSE, Reason.APPLYING),
        (
            Situation(applying=True, late=True),
            ConditionStatus.FALSE,
            Reason.SCHEDULE_NOT_APPLIED,
        ),
    ],
)
def test_what_stands_in_the_way_is_told_first(
    situation: Situation, status: ConditionStatus, reason: Reason
) -> None:
    """It has to be removed before anything can be tuned."""
    state, policy = after(Traffic(GOOD), 30)

    _, told = overlaid(health(state, policy), tuned(state, policy), situation, policy)

    assert (told.status, told.reason) == (status, reason)


def test_unread_engines_are_not_called_healthy() -> None:
    """What was known of them may have ended."""
    state, policy = after(Traffic(GOOD), 30)

    healthy, _ = overlaid(
        health(state, policy), tuned(state, policy), Situation(gap=UNREACHABLE), policy
    )

    assert healthy.status is ConditionStatus.UNKNOWN
    assert "no answer within 3 s" in healthy.message


def test_with_tuning_off_nothing_stands_in_its_way() -> None:
    """The user wants no tuning, so its obstacles are no news."""
    state, policy = after(Traffic(GOOD), 3, mode=TuningMode.OFF)

    situation = Situation(not_tunable="suffix", late=True)
    _, told = overlaid(health(state, policy), tuned(state, policy), situation, policy)

    assert told.reason is Reason.TUNING_OFF


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (RestartLimits(), "fallback.level: Restart also tries"),
        (RestartLimits(wanted=True), "are not tried"),
        (RestartLimits(wanted=True, replicas=2), "are weighed"),
    ],
)
def test_of_engines_that_cannot_be_tuned_it_is_said_what_is_lost_and_what_is_left(
    limits: RestartLimits, said: str
) -> None:
    """Only a restart can change them."""
    state, policy = after(Traffic(GOOD), 3, restart=limits)

    _, told = overlaid(
        health(state, policy), tuned(state, policy), Situation(not_tunable="suffix"), policy
    )

    assert "suffix" in told.message
    assert "what another would bring is not known" in told.message
    assert said in told.message


def test_engines_that_age_explain_that_a_younger_one_is_unlike_them() -> None:
    """Else replacing one would hide why it was replaced."""
    said = Suspicion(score=1.5, said=True)
    odd = Standing("a", "a", Sign.ACCEPTANCE, said, "Odd.")
    state, policy = after(Traffic(GOOD), 5)
    state = replace(state, replicas=Replicas((odd,)), aging=Aging(message="They age."))

    assert health(state, policy).reason == Reason.ACCEPTANCE_DECAYS


def test_a_replica_that_is_odd_in_two_things_is_one_replica() -> None:
    """Its step time and its acceptance are off: no other is like it."""
    state, policy = after(Traffic(GOOD), 3)
    said = Suspicion(score=1.5, said=True)
    signs = (Sign.ACCEPTANCE, Sign.STEP_TIME)

    def told(*uids: str) -> str:
        standings = tuple(Standing(uid, uid, sign, said, "Odd.") for uid in uids for sign in signs)
        return health(replace(state, replicas=Replicas(standings)), policy).message

    assert told("one") == "Odd."
    assert told("one", "other") == "Odd. And 1 more like it."


def test_a_faulty_draft_stays_in_sight_without_speculation() -> None:
    """It may be why they run so, and nothing but a new draft mends it."""
    state, policy = after(Traffic(DEAD), 5)
    away = replace(state, restart=Restart(variant=Variant.AUTOREGRESSIVE))
    assert state.fault is not None

    told = health(away, policy)

    assert told.reason is Reason.AUTOREGRESSIVE
    assert told.message.endswith(state.fault.message)
    assert health(replace(away, fault=None), policy).message == (
        "The engines run without speculation."
    )
