"""One model in the tuner's loop: what is read, decided, written and told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import ClusterFault, EngineSilent
from speculative_operator.tuning.history import entries
from speculative_operator.tuning.memory import from_data
from speculative_operator.tuning.schedule import ScheduleFile, schedule_hash
from tests.support.tuner_world import STEPS_A_SECOND, World, a_model, length, pass_seconds
from tests.support.windows import DEAD, Traffic, a_policy


@pytest.fixture
def world() -> World:
    return World()


def edit(world: World, **changes: object) -> None:
    """The user edits the tuning section of the only model."""
    policy = replace(world.models[0].policy, **changes)  # type: ignore[arg-type]
    world.models[0] = replace(world.models[0], policy=policy)


def tuned_reason(world: World) -> Reason:
    """The reason of the condition Tuned."""
    return world.views["model"].tuned.reason


# Tuning.


async def test_it_tunes_a_model(world: World) -> None:
    """From the initial K=4 to the best one, saved and told."""
    a_model(world)

    await pass_seconds(world, Tuner(world.ports()), 60)

    assert length(world) == 2
    assert world.views["model"].main_length == 2
    assert world.views["model"].evidence is not None
    assert [change.after for change in world.views["model"].decisions] == [2]
    assert EventReason.PROPOSAL_LENGTH_CHANGED in {notice.reason for notice in world.notices}
    assert "model" in world.memories


async def test_a_decision_is_saved_before_it_is_acted_upon(world: World) -> None:
    """Killed between the two, a new operator acts upon what it finds saved."""
    a_model(world)
    await pass_seconds(world, Tuner(world.ports()), 4)
    world.log.clear()

    await pass_seconds(world, Tuner(world.ports()), 60)

    kinds = [kind for kind, _ in world.log]
    assert kinds.index("memory") < kinds.index("schedule")


async def test_a_decision_that_cannot_be_saved_waits(world: World) -> None:
    """The API server is away for a while: nothing is lost, and then it is done."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 4)
    world.fault = ClusterFault("no API server")
    await pass_seconds(world, tuner, 60)
    assert length(world) == 4

    world.fault = None
    await pass_seconds(world, tuner, 10)
    assert length(world) == 2


async def test_an_unrelated_draft_is_left_and_told(world: World) -> None:
    """By a condition, and by an Event for each of the two."""
    a_model(world)
    world.engines["model-0"].traffic = Traffic(DEAD)

    await pass_seconds(world, Tuner(world.ports()), 20)

    assert length(world) == 0
    assert world.views["model"].healthy.reason is Reason.NO_ACCEPTANCE
    assert {EventReason.SPECULATION_FAULTY, EventReason.FELL_BACK} <= {
        notice.reason for notice in world.notices
    }


async def test_bounds_are_obeyed_at_the_next_tick(world: World) -> None:
    """No window has to end first."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 8)

    edit(world, low=3, high=3)
    await tuner.tick()

    assert length(world) == 3


async def test_off_plays_the_fixed_table(world: World) -> None:
    """And the condition says so."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 30)

    edit(world, mode=TuningMode.OFF)
    await pass_seconds(world, tuner, 30)

    assert length(world) == 3
    assert world.views["model"].tuned.reason is Reason.TUNING_OFF


async def test_replicas_share_their_evidence(world: World) -> None:
    """Three engines learn three times as fast."""
    a_model(world, replicas=3)

    await pass_seconds(world, Tuner(world.ports()), 60)

    lines = from_data(world.memories["model"].data, world.memories["model"].binary_data).history
    assert [entry.window.replicas for entry in entries(lines) if entry.window][-1] == 3
    assert set(world.views["model"].replicas) == {"model-0", "model-1", "model-2"}


async def test_only_ready_engines_are_read(world: World) -> None:
    """A loading one only costs a timeout."""
    model = a_model(world, replicas=2)
    loading = replace(model.replicas[1], ready=False)
    world.models[0] = replace(model, replicas=(model.replicas[0], loading))

    await pass_seconds(world, Tuner(world.ports()), 30)

    assert {uid for _, uid in world.reads} == {"model-0"}


async def test_a_look_is_asked_for_by_annotation(world: World) -> None:
    """The table stays; only the look is new."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 200)
    before = ScheduleFile.read(world.texts["model"])
    world.models[0] = replace(world.models[0], look="now")

    await tuner.tick()

    after = ScheduleFile.read(world.texts["model"])
    assert before is not None
    assert after is not None
    assert after.look == before.look + 1
    assert after.table == before.table
    assert schedule_hash(after.to_json()) != schedule_hash(before.to_json())


# The schedule on its way.


async def test_a_schedule_is_handed_on_until_it_is_reported(world: World) -> None:
    """After 2, 4 and 8 seconds, then only the kubelet's own sync is left."""
    model = a_model(world)
    world.models[0] = replace(model, policy=a_policy(low=4, high=4))
    world.engines["model-0"].takes_up = False

    await pass_seconds(world, Tuner(world.ports()), 40)

    attempts = [what.partition(".")[2] for kind, what in world.log if kind == "schedule"]
    assert attempts == ["1", "2", "3", "4"]
    assert world.views["model"].tuned.reason is Reason.SCHEDULE_NOT_APPLIED
    told = [n for n in world.notices if n.reason is EventReason.SCHEDULE_NOT_APPLIED]
    assert len(told) == 1
    assert told[0].warning


async def test_a_new_table_is_told_until_it_is_in_force(world: World) -> None:
    """A look alone is not: it changes no K that the user cares for."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 4)
    assert tuned_reason(world) is not Reason.APPLYING
    world.engines["model-0"].takes_up = False
    await pass_seconds(world, tuner, 4)
    assert tuned_reason(world) is Reason.APPLYING

    world.engines["model-0"].takes_up = True
    await pass_seconds(world, tuner, 10)
    assert tuned_reason(world) is not Reason.APPLYING


async def test_a_schedule_that_is_reported_is_not_handed_on_again(world: World) -> None:
    """Each handing on is a write to every pod."""
    a_model(world)

    await pass_seconds(world, Tuner(world.ports()), 4)

    assert [kind for kind, _ in world.log] == ["schedule"]


@pytest.mark.parametrize("text", [None, "", "{}", '{"protocol":1,"table":[[1,64,1]]}'])
async def test_a_schedule_that_somebody_changed_is_written_again(
    world: World, text: str | None
) -> None:
    """What engines play is what was decided."""
    model = a_model(world)
    world.models[0] = replace(model, policy=a_policy(low=4, high=4))
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 60)
    before = ScheduleFile.read(world.texts["model"])
    world.texts.pop("model")
    if text is not None:
        world.texts["model"] = text

    await pass_seconds(world, tuner, 10)

    after = ScheduleFile.read(world.texts["model"])
    assert before is not None
    assert after is not None
    assert after.table == before.table


async def test_the_lease_is_written_but_a_new_one_is_no_reason_to_write(world: World) -> None:
    """A failover must change nothing for the pods."""
    a_model(world)
    await pass_seconds(world, Tuner(world.ports(), lease=lambda: ("one", 1)), 60)
    written = ScheduleFile.read(world.texts["model"])
    assert written is not None
    assert written.lease == ("one", 1)
    world.engines["model-0"].traffic = None
    world.log.clear()

    await pass_seconds(world, Tuner(world.ports(), lease=lambda: ("two", 2)), 60)

    assert world.log == []


# Engines that give no evidence.


@pytest.mark.parametrize(
    ("silence", "reason"),
    [
        (EngineSilent("no answer within 3 s"), Reason.METRICS_UNREACHABLE),
        (PageUnreadable("page is no JSON"), Reason.METRICS_INVALID),
    ],
)
async def test_silent_engines_change_nothing_and_are_told(
    world: World, silence: EngineSilent, reason: Reason
) -> None:
    """No evidence is never zero."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 60)
    before = length(world)
    world.engines["model-0"].silence = silence
    world.log.clear()
    await pass_seconds(world, tuner, 130)

    view = world.views["model"]
    assert (view.healthy.reason, view.tuned.reason) == (reason, reason)
    assert view.healthy.status is ConditionStatus.UNKNOWN
    assert str(silence) in view.healthy.message
    assert length(world) == before
    assert world.log == []

    world.engines["model-0"].silence = None
    await pass_seconds(world, tuner, 70)
    assert world.views["model"].healthy.status is ConditionStatus.TRUE


async def test_one_silent_replica_of_two_is_named_and_no_more(world: World) -> None:
    """The other one's evidence still counts."""
    a_model(world, replicas=2)
    world.engines["model-1"].silence = EngineSilent("refused")

    await pass_seconds(world, Tuner(world.ports()), 60)

    view = world.views["model"]
    assert view.healthy.status is ConditionStatus.TRUE
    assert view.replicas["model-1"].message == "refused"
    assert length(world) == 2


async def test_engines_that_cannot_be_tuned_are_left_alone(world: World) -> None:
    """Their evidence is shown, and why nothing is done with it."""
    a_model(world)
    world.engines["model-0"].changes = {"tunable": False, "reason": "suffix decoding"}

    await pass_seconds(world, Tuner(world.ports()), 60)

    view = world.views["model"]
    assert view.tuned.reason is Reason.NOT_TUNABLE
    assert view.tuned.message.startswith("The length cannot be changed live: suffix decoding. ")
    assert view.evidence is not None
    assert world.texts == {}


async def test_engines_without_a_schedule_need_a_restart(world: World) -> None:
    """Started with tuning off; then the user switched it on."""
    a_model(world)
    world.models[0] = replace(world.models[0], scheduled=False, restart_helps=True)

    await pass_seconds(world, Tuner(world.ports()), 60)

    assert world.views["model"].tuned.reason is Reason.RESTART_NEEDED
    assert "speculation.dev/refresh" in world.views["model"].tuned.message
    assert world.texts == {}


async def test_a_model_without_ready_engines_is_not_written_to(world: World) -> None:
    """Its pods load; the schedule that reconcile wrote is what they start with."""
    model = a_model(world)
    pods = tuple(replace(pod, ready=False) for pod in model.replicas)
    world.models[0] = replace(model, replicas=pods)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 5)
    world.log.clear()

    await pass_seconds(world, tuner, 120)

    assert world.log == []


async def test_an_engine_that_was_not_ready_for_a_while_loses_nothing(world: World) -> None:
    """Its readiness flapped; its counters went on."""
    model = a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 60)
    loading = tuple(replace(pod, ready=False) for pod in model.replicas)
    world.models[0] = replace(model, replicas=loading)
    await pass_seconds(world, tuner, 20)

    world.models[0] = model
    await pass_seconds(world, tuner, 2)
    evidence = world.views["model"].evidence

    assert evidence is not None
    assert evidence.drafts > 15 * STEPS_A_SECOND * 4
