"""Engines whose K cannot change live are watched: what is still seen of them, and what is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.api.status import WhyNot
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.controller.wanted.policy import policy_of
from speculative_operator.plan.model import plan
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.variant import Variant
from tests.support.tuner_world import Engine, World, a_model, pass_seconds
from tests.support.windows import DEAD, GOOD, NOISY, STEP_MS, Traffic, a_policy
from tests.unit.plan import builders

STARTUP = 10.0
PLAIN = Traffic(step_ms={0: STEP_MS[0] / 1.2})

DATA_PARALLEL = "data parallelism, and this page is of one rank only"


@pytest.fixture
def world() -> World:
    """One model whose engine has no plugin."""
    found = World()
    a_model(found)
    found.engines["model-0"].plugin = False
    return found


async def test_without_the_plugin_acceptance_and_the_time_of_all_steps_are_seen(
    world: World,
) -> None:
    """And no step times at other K: nothing is known of them, and nothing is decided."""
    await pass_seconds(world, Tuner(world.ports()), 60)

    view = world.views["model"]
    assert view.evidence is not None
    assert view.evidence.positions == pytest.approx(NOISY)
    decoding = 4 * (1 + sum(NOISY)) / (STEP_MS[4] / 1000)
    assert view.evidence.goodput == pytest.approx(decoding, rel=0.01)
    assert view.evidence.speedup is None
    assert view.healthy.status is ConditionStatus.TRUE
    assert view.tuned.reason is Reason.NOT_TUNABLE
    assert "no plugin" in view.tuned.message
    assert view.table == ((1, 64, 4),)
    assert world.texts == {}
    assert {other.reason for other in view.alternatives} == {WhyNot.RESTART_NEEDED}
    assert {other.gain for other in view.alternatives} == {None}


async def test_without_the_plugin_a_dead_draft_is_still_named(world: World) -> None:
    """Acceptance by position is enough for it; K stays, since nobody can change it."""
    world.engines["model-0"].traffic = Traffic(DEAD)

    await pass_seconds(world, Tuner(world.ports()), 60)

    view = world.views["model"]
    assert (view.healthy.status, view.healthy.reason) == (
        ConditionStatus.FALSE,
        Reason.NO_ACCEPTANCE,
    )
    assert view.main_length == 4
    assert EventReason.SPECULATION_FAULTY in {notice.reason for notice in world.notices}


async def test_without_the_plugin_sums_are_of_the_k_that_was_started(world: World) -> None:
    """vLLM shows as many positions as the capacity, whatever the schedule plays."""
    model = world.models[0]
    world.models[0] = replace(model, policy=replace(model.policy, initial=2))
    world.engines["model-0"].traffic = Traffic((0.61, 0.38, 0.0, 0.0))

    await pass_seconds(world, Tuner(world.ports()), 60)

    view = world.views["model"]
    assert view.main_length == 2
    assert view.evidence is not None
    assert view.evidence.positions == pytest.approx((0.61, 0.38))


async def test_bounds_do_not_move_what_cannot_be_moved(world: World) -> None:
    """Status tells what the engines play, not what is wished."""
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 20)
    model = world.models[0]
    world.models[0] = replace(model, policy=replace(model.policy, high=2))

    await pass_seconds(world, tuner, 20)

    assert world.views["model"].table == ((1, 64, 4),)
    assert world.views["model"].decisions == ()


async def test_data_parallelism_needs_no_restart_and_says_what_is_seen() -> None:
    """Its engines are started without a schedule, and a restart would change nothing of that."""
    world = World()
    model = a_model(world)
    world.models[0] = replace(model, scheduled=False)
    world.engines["model-0"].changes = {"tunable": False, "reason": DATA_PARALLEL}

    await pass_seconds(world, Tuner(world.ports()), 60)

    view = world.views["model"]
    assert view.tuned.reason is Reason.NOT_TUNABLE
    assert "one rank only" in view.tuned.message
    assert view.healthy.status is ConditionStatus.TRUE
    assert view.evidence is not None
    assert view.evidence.goodput is not None
    assert world.texts == {}


async def test_an_engine_that_gets_its_plugin_is_tuned(world: World) -> None:
    """Nothing is latched."""
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 60)
    world.engines["model-0"].plugin = True

    await pass_seconds(world, tuner, 120)

    assert world.views["model"].tuned.reason is Reason.BEST_MEASURED
    assert world.views["model"].main_length == 2


async def test_without_the_plugin_engines_without_speculation_are_tried_and_left_again() -> None:
    """By restarts, since nothing else can be changed; each operator knows what the last one did."""
    world = World()
    model = a_model(world, replicas=2)
    policy = a_policy(restart=RestartLimits(wanted=True, replicas=2))
    world.models = [replace(model, policy=policy, startup=STARTUP)]
    for engine in world.engines.values():
        engine.plugin, engine.traffic = False, Traffic(GOOD)
    await pass_seconds(world, Tuner(world.ports()), 60)
    world.models = [replace(world.models[0], look="now")]
    await pass_seconds(world, Tuner(world.ports()), 20)

    assert world.views["model"].choice.variant is Variant.AUTOREGRESSIVE

    carry_out(world, speculative=False)
    await pass_seconds(world, Tuner(world.ports()), 30)
    assert world.views["model"].tuned.reason is Reason.MEASURING
    await pass_seconds(world, Tuner(world.ports()), 120)
    view = world.views["model"]
    assert view.choice.variant is Variant.SPECULATIVE
    assert view.decisions[0].after == 4

    carry_out(world, speculative=True)
    await pass_seconds(world, Tuner(world.ports()), 300)
    view = world.views["model"]
    assert view.choice.variant is Variant.SPECULATIVE
    assert view.tuned.reason is Reason.NOT_TUNABLE
    assert view.outlook is not None
    assert view.outlook.gain is not None
    assert view.outlook.gain < -0.35


def carry_out(world: World, *, speculative: bool) -> None:
    """All engines come again in the variant that is wanted."""
    (model,) = world.models
    pods = (*model.replicas, *model.plain)
    for pod in pods:
        engine = world.engines[pod.uid] = Engine()
        engine.plugin, engine.plain = False, not speculative
        engine.traffic = Traffic(GOOD) if speculative else PLAIN
    there, away = (pods, ()) if speculative else ((), pods)
    world.models = [replace(model, replicas=there, plain=away)]


def test_an_engine_without_a_schedule_plays_its_capacity() -> None:
    """vLLM knows no other length there, whatever the spec's initial one is."""
    lengths = {"capacity": 5, "initial": 3}
    model = builders.a_model(
        speculation={**builders.EAGLE3, "proposalLength": lengths}, parallelism={"data": 2}
    )

    policy = policy_of(model.spec, plan(model, builders.SETTINGS).facts)

    assert policy.initial == 5
    assert {k for _, _, k in policy.fixed} == {5}
