"""The whole status, from what stands and what is known."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionStatus, ConditionType, EventReason, Reason
from speculative_operator.api.status import Condition, ModelStatus, WhyNot
from speculative_operator.controller.said.status import PassFindings, status, unread
from speculative_operator.controller.said.transitions import notices, refuses
from speculative_operator.controller.seen.names_check import Answer
from speculative_operator.controller.seen.times import unix
from speculative_operator.controller.tuner.ports import ReplicaView, TuningView
from speculative_operator.tuning.alternatives import Alternative, NextLook
from speculative_operator.tuning.variant import VariantChoice
from speculative_operator.tuning.verdict import Evidence, Verdict
from tests.unit.controller.world import World

NOW, LATER = "2026-08-23T10:00:00Z", "2026-08-23T11:00:00Z"


def told(
    world: World,
    *,
    before: ModelStatus | None = None,
    view: TuningView | None = None,
    answers: dict[str, Answer] | None = None,
    now: str = NOW,
) -> ModelStatus:
    """The status of a model now; all ready engines list its name if nothing else is said."""
    if answers is None:
        answers = {pod.incarnation: Answer() for pod in world.seen().pods if pod.ready}
    found = PassFindings(before, answers, view, unix(now))
    return status(world.model, world.seen(), world.desired(), found)


def condition(of: ModelStatus, kind: ConditionType) -> Condition:
    """One condition."""
    return next(found for found in of.conditions if found.type is kind)


def a_view(world: World, **fields: Any) -> TuningView:
    """What the tuner might say."""
    current = world.desired().current
    assert current is not None
    good = Verdict(ConditionStatus.TRUE, Reason.HEALTHY, "sound")
    best = Verdict(ConditionStatus.TRUE, Reason.BEST_MEASURED, "K=3 is best")
    return TuningView(
        **{
            "key": current.key,
            "table": ((1, 256, 3),),
            "main_length": 3,
            "healthy": good,
            "tuned": best,
            "choice": VariantChoice(current.key),
            **fields,
        }
    )


@pytest.fixture
def world() -> World:
    """A model with one replica that serves."""
    made = World(replicas=1)
    made.settle()
    return made


def test_a_model_that_starts_has_every_condition() -> None:
    """An absent condition and a False one would mix."""
    world = World(replicas=1)
    world.act()

    found = {c.type: (c.status, c.reason) for c in told(world).conditions}

    assert found == {
        ConditionType.ACCEPTED: ("True", "Valid"),
        ConditionType.READY: ("False", "Starting"),
        ConditionType.PROGRESSING: ("True", "Scaling"),
        ConditionType.SPECULATION_HEALTHY: ("Unknown", "NoTraffic"),
        ConditionType.TUNED: ("Unknown", "NotEnoughDrafts"),
        ConditionType.RECONCILING: ("True", "Scaling"),
    }


def test_a_model_that_serves_is_ready_and_settled(world: World) -> None:
    """kstatus sees nothing going on."""
    now = told(world)

    assert condition(now, ConditionType.READY).status == "True"
    assert condition(now, ConditionType.PROGRESSING).status == "False"
    assert {c.type for c in now.conditions} == set(list(ConditionType)[:5])
    assert (now.replicas, now.ready_replicas) == (1, 1)
    assert now.revisions.last_good == now.revisions.current


def test_a_rollout_is_not_over_before_its_last_pod() -> None:
    """All pods are ready in the middle of it, and who waits for the end must not go on."""
    world = World(replicas=2, rollout={"trial": {"mode": "Off"}})
    world.settle()
    world.edit(replicas=2, rollout={"trial": {"mode": "Off"}}, model={"maxModelLen": 4096})
    kinds = (ConditionType.PROGRESSING, ConditionType.RECONCILING)
    mixed = 0
    for _ in range(20):
        world.make_ready()
        world.act(answering={pod.incarnation for pod in world.seen().pods})
        revisions = {pod.revision for pod in world.seen().pods}
        now = told(world)
        if len(revisions) > 1:
            mixed += 1
            assert [condition(now, kind).status for kind in kinds] == ["True", "True"]
    over = told(world)

    assert mixed
    assert condition(over, ConditionType.PROGRESSING).reason == Reason.SETTLED
    assert ConditionType.RECONCILING not in {each.type for each in over.conditions}


def test_what_was_observed_is_the_generation_of_the_resource(world: World) -> None:
    """A child has generations of its own, which say nothing of the spec that was read."""
    first = told(world)
    (deployment,) = (copy for ref, copy in world.seen().copies.items() if ref.kind == "Deployment")
    child = deployment.manifest()
    child["metadata"] |= {"generation": 41, "resourceVersion": "1000"}
    child["status"] = {"observedGeneration": 41}
    world.cache.put({"kind": "Deployment", **child})
    again = told(world)
    world.edit(replicas=1)
    edited = told(world)

    for now, generation in ((first, 1), (again, 1), (edited, 2)):
        assert now.observed_generation == generation
        assert {each.observed_generation for each in now.conditions} == {generation}


def test_an_engine_that_was_not_asked_does_not_serve_yet(world: World) -> None:
    """Readiness alone is not believed."""
    now = told(world, answers={})

    assert condition(now, ConditionType.READY).reason == "Starting"


def test_what_status_said_of_a_pod_stands_until_its_engine_was_asked(world: World) -> None:
    """Else every restart of the operator would say that all models are down."""
    before = told(world)

    assert told(world, before=before, answers={}, now=LATER) == before


def test_what_status_said_of_tuning_stands_until_the_tuner_speaks(world: World) -> None:
    """Evidence, decisions and the hash in force are not lost by a restart."""
    (pod,) = world.seen().pods
    view = a_view(
        world,
        evidence=Evidence(measured_at=0.0, drafts=400, acceptance=0.71),
        replicas={pod.uid: ReplicaView(tunable=True, schedule="0123456789ab")},
    )
    before = told(world, view=view)

    again = told(world, before=before, now=LATER)

    assert again == before
    assert again.wire()["evidence"]["acceptance"] == "0.710"
    assert again.replica_details[0].schedule == "0123456789ab"


def test_a_time_changes_only_with_its_status(world: World) -> None:
    """As in every Kubernetes condition; another reason is no transition."""
    before = told(world)
    world.lose_readiness()
    lost = told(world, before=before, now=LATER)
    world.edit(replicas=0)
    world.settle()
    parked = told(world, before=before, now=LATER)

    assert condition(lost, ConditionType.ACCEPTED).last_transition_time == NOW
    assert condition(lost, ConditionType.READY).last_transition_time == LATER
    assert condition(parked, ConditionType.READY).reason == Reason.SCALED_TO_ZERO
    assert condition(parked, ConditionType.READY).last_transition_time == NOW


def test_fallback_is_told_by_mode(world: World) -> None:
    """K is 0 at every batch size, though the method is not none."""
    now = told(world, view=a_view(world, table=((1, 256, 0),), main_length=0))

    assert (now.mode, now.proposal_length) == ("Fallback", 0)


def test_alternatives_and_the_next_look_are_told_in_few_numbers(world: World) -> None:
    """Goodput is of the same kind as what is measured now, and what is not known stays away."""
    view = a_view(
        world,
        evidence=Evidence(measured_at=1_800_000_000.0, drafts=412, goodput=400.0),
        alternatives=(
            Alternative(0, -0.123, 0.021, 1_799_999_000.0, WhyNot.SLOWER, "measured slower"),
            Alternative(5, None, None, None, WhyNot.NOT_MEASURED, "trials pending"),
        ),
        next_look=NextLook(4, 1_800_000_020.0, "in 4 windows with evidence"),
    )

    evidence = told(world, view=view).wire()["evidence"]

    assert evidence["alternatives"] == [
        {
            "proposalLength": 0,
            "goodput": "350.8",
            "gainPercent": "-12.3",
            "errorPercent": "2.1",
            "measuredAt": "2027-01-15T07:43:20Z",
            "reason": "MeasuredSlower",
            "message": "measured slower",
        },
        {"proposalLength": 5, "reason": "NotMeasured", "message": "trials pending"},
    ]
    assert evidence["nextLook"] == {
        "windows": 4,
        "time": "2027-01-15T08:00:20Z",
        "message": "in 4 windows with evidence",
    }


def test_a_model_without_a_method_is_autoregressive() -> None:
    """There is nothing to fall back from."""
    world = World(speculation={"method": "none"})
    world.act()

    now = told(world)

    assert now.mode == "Autoregressive"
    assert condition(now, ConditionType.TUNED).reason == "NothingToTune"


def test_a_refused_model_says_so_in_stalled_and_ready_tells_of_what_serves(world: World) -> None:
    """kstatus calls it failed; the pods of before serve on."""
    world.edit(runtime={"podTemplate": {"spec": {"hostNetwork": True}}})

    now = told(world)

    assert condition(now, ConditionType.ACCEPTED).reason == "Invalid"
    assert condition(now, ConditionType.STALLED).message
    assert condition(now, ConditionType.READY).status == "True"


def test_a_model_refused_from_the_start_has_every_condition_too() -> None:
    """And nothing is known of its tuning."""
    world = World(runtime={"podTemplate": {"spec": {"hostNetwork": True}}})

    now = told(world)

    assert {c.reason for c in now.conditions} == {"Invalid", "NotAccepted"}
    assert now.mode is None


def test_messages_hold_no_time_and_no_count(world: World) -> None:
    """Else each pass would be a write."""
    now = told(world)

    assert told(world, before=now, now=LATER).wire() == now.wire()


def test_a_new_revision_and_its_success_are_told_once(world: World) -> None:
    """A user following the model sees when it starts and when it serves."""
    starting = World(replicas=1)
    starting.act()
    first, then = told(starting), told(world)

    assert [n.reason for n in notices(None, first)] == [EventReason.REVISION_CREATED]
    assert [n.reason for n in notices(first, then)] == [EventReason.ROLLED_OUT]
    assert list(notices(then, then)) == []


def test_a_refusal_is_told_once_and_at_once(world: World) -> None:
    """With its words, as a warning."""
    before = told(world)
    world.edit(runtime={"podTemplate": {"spec": {"hostNetwork": True}}})
    after = told(world, before=before)

    (notice,) = notices(before, after)

    assert (notice.reason, notice.warning) == (EventReason.REFUSED, True)
    assert refuses(before, after)
    assert not refuses(after, after)


def test_a_reason_of_another_version_is_replaced_until_the_tuner_speaks(world: World) -> None:
    """A newer operator wrote it and was taken back; the older one goes on."""
    before = told(world, view=a_view(world))
    strange = tuple(c.model_copy(update={"reason": "Foresight"}) for c in before.conditions)

    again = told(world, before=before.model_copy(update={"conditions": strange}), now=LATER)

    assert condition(again, ConditionType.TUNED).reason == Reason.NOT_ENOUGH_DRAFTS
    assert again.proposal_length == before.proposal_length


def test_a_status_without_our_conditions_is_no_obstacle(world: World) -> None:
    """All of them may have been of a kind that is not understood."""
    before = told(world).model_copy(update={"conditions": ()})
    after = told(world, before=before)

    assert {c.type for c in after.conditions} == set(list(ConditionType)[:5])
    assert list(notices(before, after)) == []
    assert not refuses(before, after)


REFUSAL = Verdict(ConditionStatus.FALSE, Reason.INVALID, "spec.replicas: Field required")


def test_a_spec_that_cannot_be_read_changes_only_what_is_said_of_it(world: World) -> None:
    """What runs goes on; what was said of it stands, as of the generation it was said of."""
    before = told(world, view=a_view(world))

    after = unread(before, 7, REFUSAL, LATER)

    accepted = condition(after, ConditionType.ACCEPTED)
    assert (accepted.status, accepted.reason) == ("False", "Invalid")
    assert accepted.message == REFUSAL.message
    assert condition(after, ConditionType.STALLED).status == "True"
    for kind in (ConditionType.READY, ConditionType.TUNED, ConditionType.PROGRESSING):
        assert condition(after, kind) == condition(before, kind)
    assert after.observed_generation == 7
    assert (after.revisions, after.ready_replicas) == (before.revisions, 1)
    assert unread(after, 7, REFUSAL, "2026-08-23T12:00:00Z") == after


def test_a_spec_that_could_never_be_read_has_every_condition() -> None:
    """And nothing was started."""
    after = unread(None, 1, REFUSAL, NOW)

    assert {c.type for c in after.conditions} == {*list(ConditionType)[:5], ConditionType.STALLED}
    assert condition(after, ConditionType.READY).reason == "NotAccepted"
