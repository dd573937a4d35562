"""The tuner's loop with engines that were started without speculation beside, or instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.controller.tuner.ports import TunedModel
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.errors import ClusterFault, EngineSilent
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.variant import Variant
from tests.support.tuner_world import World, a_model, pass_seconds
from tests.support.variants import costing
from tests.support.windows import STEP_MS, Traffic, a_policy

LIMITS = RestartLimits(wanted=True, replicas=2)
DEAR = Traffic(step_ms=costing(1.6))
PLAIN = Traffic(step_ms={0: STEP_MS[0] / 1.2})

STARTUP = 10.0
"""Seconds, so that a restart soon pays."""


def a_pair(world: World) -> TunedModel:
    """Two engines whose traffic makes no draft worth its price."""
    model = a_model(world, replicas=2)
    model = replace(model, policy=a_policy(restart=LIMITS), startup=STARTUP)
    world.models = [model]
    for engine in world.engines.values():
        engine.traffic = DEAR
    return model


def choice(world: World) -> Variant:
    """What the tuner wants to run."""
    return world.views["model"].choice.variant


def carry_out(world: World, model: TunedModel) -> TunedModel:
    """All engines come again without speculation."""
    for replica in model.replicas:
        engine = world.engines[replica.uid]
        engine.traffic, engine.schedule, engine.takes_up = PLAIN, None, False
        engine.plain = True
    world.texts.clear()
    moved = replace(model, replicas=(), plain=model.replicas)
    world.models = [moved]
    return moved


async def until_it_leaves(world: World, tuner: Tuner) -> None:
    """Traffic until the tuner wants no speculation."""
    for _ in range(200):
        await pass_seconds(world, tuner, 10)
        if choice(world) is Variant.AUTOREGRESSIVE:
            return
    raise AssertionError("it never leaves")


async def test_what_is_wanted_is_told_once_it_is_saved() -> None:
    """A pod that was rolled on a decision that nobody remembers would be rolled back."""
    world = World()
    a_pair(world)
    tuner = Tuner(world.ports())
    await until_it_leaves(world, tuner)
    saves = [key for what, key in world.log if what == "memory"]
    assert saves

    again = World()
    a_pair(again)
    tuner = Tuner(again.ports())
    await pass_seconds(again, tuner, 60)
    again.fault = ClusterFault("no writes")
    await pass_seconds(again, tuner, 600)

    assert choice(again) is Variant.SPECULATIVE


async def test_a_new_operator_wants_the_same_from_its_first_word() -> None:
    """It is read from the memory before anything rolls."""
    world = World()
    a_pair(world)
    await until_it_leaves(world, Tuner(world.ports()))
    world.views.clear()

    await pass_seconds(world, Tuner(world.ports()), 1)

    assert choice(world) is Variant.AUTOREGRESSIVE


async def test_engines_without_speculation_get_no_schedule_and_are_measured() -> None:
    """Nobody would play one, and its ConfigMap is gone."""
    world = World()
    model = a_pair(world)
    tuner = Tuner(world.ports())
    await until_it_leaves(world, tuner)
    carry_out(world, model)
    world.log.clear()

    await pass_seconds(world, tuner, 120)

    view = world.views["model"]
    assert "schedule" not in {what for what, _ in world.log}
    assert view.choice.variant is Variant.AUTOREGRESSIVE
    assert view.evidence is not None
    assert view.evidence.goodput is not None
    assert view.evidence.acceptance is None
    assert view.decisions[0].outcome is not None


async def test_engines_without_speculation_that_are_silent_are_told_of() -> None:
    """As any other engines."""
    world = World()
    model = a_pair(world)
    tuner = Tuner(world.ports())
    await until_it_leaves(world, tuner)
    carry_out(world, model)
    await pass_seconds(world, tuner, 30)
    for engine in world.engines.values():
        engine.silence = EngineSilent("no answer")

    await pass_seconds(world, tuner, 150)

    assert world.views["model"].tuned.reason == "MetricsUnreachable"
    assert choice(world) is Variant.AUTOREGRESSIVE


async def test_a_lost_memory_leaves_what_runs() -> None:
    """Nothing remembered is not the same as nothing decided."""
    world = World()
    carry_out(world, a_pair(world))

    await pass_seconds(world, Tuner(world.ports()), 60)

    assert choice(world) is Variant.AUTOREGRESSIVE


@pytest.mark.parametrize("sensor", [False, True])
async def test_a_lost_memory_leaves_a_sensor_where_one_is_wanted(*, sensor: bool) -> None:
    """Else the one that speculates is the beginning of a way back."""
    world = World()
    model = a_pair(world)
    limits = replace(LIMITS, sensor=sensor)
    plain = carry_out(world, model).plain
    model = replace(model, policy=a_policy(restart=limits))
    world.models = [replace(model, replicas=plain[:1], plain=plain[1:])]

    await pass_seconds(world, Tuner(world.ports()), 1)

    found = world.views["model"].choice
    assert (found.variant is Variant.AUTOREGRESSIVE, found.sensor) == (sensor, sensor)


async def test_a_memory_that_the_user_overrules_is_saved_as_such() -> None:
    """The leave was withdrawn while no operator ran."""
    world = World()
    model = a_pair(world)
    await until_it_leaves(world, Tuner(world.ports()))
    world.models = [replace(model, policy=a_policy(restart=RestartLimits(replicas=2)))]
    world.views.clear()

    await pass_seconds(world, Tuner(world.ports()), 3)

    assert choice(world) is Variant.SPECULATIVE
