"""A revision on trial beside the one that serves, played on a cluster of plain dicts."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionType, EventReason, Reason
from speculative_operator.controller.said.transitions import notices
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.controller.wanted.probation import Probation
from speculative_operator.plan.continuations import PROMPTS, Continuation, ReferenceOutput
from speculative_operator.plan.model import key_of
from speculative_operator.plan.trial import NotCompared, Silent
from speculative_operator.tuning.contest import Contest
from speculative_operator.tuning.schedule import ScheduleFile
from tests.unit.controller.test_status import condition, told
from tests.unit.controller.world import SAID, World

LONGER: dict[str, Any] = {"model": {"maxModelLen": 4096}}
OTHER = tuple(Continuation((3, 4), (5.0, 5.0)) for _ in PROMPTS)
SLOW = Contest(3, -1.0, -0.5)


def key(world: World) -> str:
    """The key that the spec asks for."""
    return key_of(world.model)


def answering(world: World) -> set[str]:
    """The pods that list their names: all that are ready."""
    return {pod.incarnation for pod in world.seen().pods if pod.ready}


def passes(world: World, count: int = 8) -> Desired:
    """So many passes; a pod gets ready after the one that has first seen it."""
    for _ in range(count):
        desired = one_pass(world)
    return desired


def one_pass(world: World) -> Desired:
    """A pass, after which those pods are ready that it saw."""
    seen = {pod.name for pod in world.seen().pods}
    desired = world.act(answering=answering(world))
    world.make_ready(seen)
    return desired


def trial(replicas: int = 3, strategy: str = "InPlace", **change: Any) -> tuple[World, str]:
    """A model that served and was changed, and the key of what serves."""
    rollout = {"rollout": {"strategy": strategy, "allowDowntime": True}}
    world = World(replicas=replicas, **rollout)
    world.settle()
    good = world.last_good = key(world)
    world.edit(**{"replicas": replicas, **rollout, **(change or LONGER)})
    return world, good


def probation(world: World) -> Probation:
    """The trial as a pass sees it."""
    found = world.desired(answering=answering(world)).probation
    assert found is not None
    return found


@pytest.mark.parametrize("strategy", ["InPlace", "Surge"])
def test_one_pod_is_tried_and_the_others_wait(strategy: str) -> None:
    """However long it takes: nothing else moves before it has passed."""
    world, good = trial(3, strategy)
    world.speed = None
    passes(world, 12)

    assert world.replicas() == {good: 2, key(world): 1}
    assert all(pod.routed for pod in world.seen().pods)


@pytest.mark.parametrize("gone", ["deleted", "scaled", "parked"])
def test_the_good_revision_comes_back_where_it_has_no_pods_on_trial(gone: str) -> None:
    """All replicas of a revision that nothing is known of would be an outage if it is bad."""
    world, good = trial(3)
    world.answers = None
    passes(world, 12)
    match gone:
        case "deleted":
            world.delete("Deployment", world.deployment(good)["metadata"]["name"])
            for pod in world.seen().pods_of(good):
                world.delete("Pod", pod.name)
        case "scaled":
            world.scale(good, 0)
        case _:
            world.edit(replicas=0, **LONGER)
            passes(world)
            assert not world.seen().pods
            world.edit(replicas=3, **LONGER)
    passes(world)

    assert world.replicas() == {good: 2, key(world): 1}


def test_with_one_replica_and_room_for_two_both_run() -> None:
    """The running one is what the new one is compared with."""
    world, good = trial(1, "Surge")
    world.speed = None
    passes(world)

    assert world.replicas() == {good: 1, key(world): 1}
    world.speed = Contest(3, 0.0, 0.1)
    passes(world)
    assert world.replicas() == {key(world): 1}


def test_with_one_replica_and_no_room_it_goes_in_place() -> None:
    """Speed cannot be compared then; output can, with what was said before."""
    world, good = trial(1)
    passes(world, 6)
    (pod,) = world.seen().pods
    assert pod.revision == key(world)
    assert not pod.routed or world.seen().standing(key(world)) is Standing.GOOD

    world, good = trial(1)
    world.answers = OTHER
    passes(world, 12)
    assert world.replicas() == {good: 1}


def test_no_pod_goes_before_the_running_revision_was_asked() -> None:
    """Afterwards nobody may be left to ask."""
    world, good = trial(1)
    world.reference = None
    passes(world)
    assert world.replicas() == {good: 1, key(world): 0}

    world.reference = ReferenceOutput(missing="Output is not compared: it wants a key.")
    passes(world, 4)
    assert world.replicas()[key(world)] == 1


def test_what_the_running_revision_said_is_recorded() -> None:
    """So a new operator compares with it though the pod is gone."""
    world, _ = trial(1)
    world.act()
    world.act()
    recorded = world.seen().revisions[key(world)].reference
    assert recorded is not None

    world.reference = None
    passes(world)

    assert world.seen().standing(key(world)) is Standing.GOOD


def test_requests_reach_its_pod_only_once_its_output_is_the_same() -> None:
    """Then it needs some of them, for its speed."""
    world, _ = trial()
    world.answers, world.speed = None, None
    passes(world)
    assert [pod.routed for pod in world.seen().pods_of(key(world))] == [False]

    world.answers = SAID
    passes(world)

    assert [pod.routed for pod in world.seen().pods_of(key(world))] == [True]
    assert world.seen().standing(key(world)) is Standing.TRIAL


@pytest.mark.parametrize(
    ("answers", "speed", "reason"),
    [
        (OTHER, None, Reason.OUTPUT_DIFFERS),
        (Silent("It answers 500."), None, Reason.DOES_NOT_ANSWER),
        (SAID, SLOW, Reason.TOO_SLOW),
    ],
)
@pytest.mark.parametrize("strategy", ["InPlace", "Surge"])
def test_a_rejected_revision_goes_and_the_last_good_one_is_whole_again(
    answers: Any, speed: Any, reason: Reason, strategy: str
) -> None:
    """By itself, and status says why."""
    world, good = trial(3, strategy)
    world.answers, world.speed = answers, speed
    for _ in range(20):
        one_pass(world)
        assert sum(pod.routed for pod in world.seen().pods) >= 2

    assert world.replicas() == {good: 3}
    verdict = world.seen().verdict(key(world))
    assert verdict is not None
    assert (verdict.standing, verdict.reason) == (Standing.BAD, reason)
    assert condition(told(world), ConditionType.STALLED).reason == reason


def test_time_counts_from_when_speed_is_compared() -> None:
    """Not from the engine's start: its output may have taken minutes to compare, and a pod may have
    been ready for long before an operator came that lets requests reach it."""
    world, _ = trial()
    world.speed = None
    world.now = 10_000.0
    passes(world)
    assert probation(world).again_in is None

    world.since = 9_990.0
    assert probation(world).again_in == 590.0
    world.now += 590.0
    passes(world, 1)

    verdict = world.seen().verdict(key(world))
    assert verdict is not None
    assert (verdict.standing, verdict.reason) == (Standing.GOOD, Reason.SPEED_NOT_MEASURED)


def test_promotion_keeps_its_pod() -> None:
    """It is the first of the new ones."""
    world, _ = trial()
    world.speed = None
    passes(world)
    (pod,) = world.seen().pods_of(key(world))

    world.speed = Contest(3, 0.1, 0.2)
    passes(world, 15)

    assert world.replicas() == {key(world): 3}
    assert pod.name in {each.name for each in world.seen().pods}


def test_the_end_of_a_rollout_is_told() -> None:
    """The revision was good long before, with its first pod."""
    world = World(replicas=3)
    world.settle()
    before = told(world)
    world.last_good = key(world)
    world.edit(replicas=3, **LONGER)
    reasons = []
    for _ in range(20):
        one_pass(world)
        after = told(world, before=before)
        reasons += [notice.reason for notice in notices(before, after)]
        before = after

    assert reasons == [EventReason.REVISION_CREATED, EventReason.ROLLED_OUT]


def test_the_tuner_stays_with_the_running_revision() -> None:
    """Until the new one is promoted, although requests reach both."""
    world, good = trial(2)
    world.speed = None
    desired = passes(world)

    assert desired.serving is not None
    assert desired.serving.key == good


def test_status_tells_of_the_trial() -> None:
    """What is being tried, and what serves."""
    world, good = trial()
    world.speed = None
    passes(world)
    now = told(world)

    progressing = condition(now, ConditionType.PROGRESSING)
    assert (progressing.status, progressing.reason) == ("True", "OnTrial")
    assert key(world) in progressing.message
    assert (now.revisions.trial, now.revisions.last_good) == (key(world), good)


@pytest.mark.parametrize(
    ("change", "output", "speed"),
    [
        (LONGER, True, True),
        ({"speculation": {"method": "none", "draft": None}}, True, False),
        ({"model": {"dtype": "float16"}}, False, False),
        ({"model": {"source": "hf://another/model"}}, False, False),
        ({"accelerator": {"products": ["MI355X"]}}, True, False),
        ({"accelerator": {"products": ["MI300X"], "count": 2}}, True, False),
    ],
)
def test_only_like_is_compared_with_like(
    change: dict[str, Any], *, output: bool, speed: bool
) -> None:
    """Another model says other things, and other GPUs are not as fast."""
    world, _ = trial(**change)
    passes(world, 1)
    asked = probation(world).case
    assert asked.reference is output

    world.speed = None
    passes(world)
    standing = world.seen().standing(key(world))
    assert standing is (Standing.TRIAL if speed else Standing.GOOD)


def test_all_lengths_are_played_on_trial() -> None:
    """A revision is held against the running one at its best length."""
    world, _ = trial()
    world.speed = None
    passes(world)
    played = ScheduleFile.read(world.seen().schedules[key(world)])

    assert played is not None
    (turn,) = played.trials
    assert {*turn.arms, *(k for _, _, k in played.table)} == set(probation(world).arms)


def test_without_trials_the_first_pod_that_answers_is_enough() -> None:
    """Nothing is asked of engines."""
    world, _ = trial(**LONGER, rollout={"trial": {"mode": "Off"}})
    world.answers, world.speed, world.reference = OTHER, SLOW, None
    passes(world, 15)

    assert world.replicas() == {key(world): 3}


def test_a_revision_whose_output_was_not_compared_says_so() -> None:
    """In the verdict, for example behind an API key."""
    world, _ = trial()
    world.answers = NotCompared("Output is not compared: it wants a key.")
    passes(world)
    verdict = world.seen().verdict(key(world))

    assert verdict is not None
    assert (verdict.standing, verdict.reason) == (Standing.GOOD, Reason.SPEED_NOT_MEASURED)
    assert "it wants a key" in verdict.message


def test_an_engine_that_hangs_does_not_block_the_change_that_mends_it() -> None:
    """It is not asked what it says; where no other answers, output is not compared."""
    world, _ = trial(1)
    world.reference = None
    passes(world, 1)
    (old,) = world.seen().pods
    assert probation(world).case.reference

    world.hung = {old.uid: "hangs"}
    asked = probation(world)
    assert asked.case.running.replicas == ()
    assert not asked.waits_for_reference
    passes(world, 15)
    assert world.replicas() == {key(world): 1}


def test_of_several_engines_one_that_does_not_hang_is_asked() -> None:
    """The reference is that of the revision, not of a pod."""
    world, _ = trial(3)
    passes(world, 1)
    hung = world.seen().pods[0]
    world.hung = {hung.uid: "hangs"}
    asked = probation(world).case

    assert asked.reference
    assert len(asked.running.replicas) == 2
    assert hung.uid not in {replica.uid for replica in asked.running.replicas}


@pytest.mark.parametrize("replicas", [1, 3])
def test_parking_waits_for_no_answers(replicas: int) -> None:
    """Nobody is to be compared with, and the user wants the GPUs."""
    world, _ = trial(replicas)
    world.reference = None
    passes(world, 1)
    assert probation(world).waits_for_reference
    rollout = {"strategy": "InPlace", "allowDowntime": True}
    world.edit(replicas=0, rollout=rollout, **LONGER)
    passes(world)

    assert set(world.replicas().values()) == {0}
