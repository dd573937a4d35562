"""Replicas while the API server refuses the newest spec, on a cluster of plain dicts."""

from __future__ import annotations

import pytest

from speculative_operator.controller.wanted.meanwhile import meanwhile
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.variant import Variant, VariantChoice
from tests.unit.controller.test_probation import one_pass
from tests.unit.controller.world import World

LONGER = {"model": {"maxModelLen": 4096}}


def scaled(world: World, current: str | None = None) -> list[int]:
    """Replicas that the Deployments should get meanwhile."""
    found = meanwhile(world.model, world.seen(), world.choice, current)
    return [manifest["spec"]["replicas"] for manifest in found]


@pytest.fixture
def refused() -> World:
    """Two pods serve; the newest spec has a record, but no Deployment: it was refused."""
    world = World(replicas=2)
    world.settle()
    world.edit(replicas=2, **LONGER)
    (new,) = world.desired().new
    world._merge(new)
    return world


def test_what_serves_gets_the_replicas_of_today(refused: World) -> None:
    """Both ways, from one edit with the spec that is refused."""
    for replicas in (4, 1, 0):
        refused.edit(replicas=replicas, **LONGER)

        assert scaled(refused) == [replicas]


def test_what_serves_as_wanted_is_left_alone(refused: World) -> None:
    """No write where nothing changes."""
    assert scaled(refused) == []


def test_a_superseded_revision_that_never_served_is_ended() -> None:
    """Its pods hold GPUs, and the one that serves is what is wanted for now."""
    world = World(replicas=2)
    world.settle()
    world.edit(replicas=2, **LONGER)
    for _ in range(3):
        world.act()
    assert sorted(world.replicas().values()) == [1, 1]

    assert scaled(world) == [0]


@pytest.mark.parametrize("strategy", ["InPlace", "Surge"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_trial_that_is_held_up_stays_where_it_is(replicas: int, strategy: str) -> None:
    """Somebody fights over the Service: each minute a pass gets through, and would start again
    what the passes between have taken away."""
    rollout = {"rollout": {"strategy": strategy}}
    world = World(replicas=replicas, **rollout)
    world.settle()
    world.last_good = key_of(world.model)
    world.edit(replicas=replicas, **rollout, **LONGER)
    world.answers = None
    for _ in range(6):
        one_pass(world)
        assert scaled(world, key_of(world.model)) == []

    world.edit(replicas=9, **rollout, **LONGER)
    assert scaled(world, key_of(world.model)) == [9 - world.replicas()[key_of(world.model)]]
    world.edit(replicas=0, **rollout, **LONGER)
    assert scaled(world, key_of(world.model)) == [0]


def test_a_model_that_never_ran_starts_nothing() -> None:
    """There is nothing that serves."""
    assert scaled(World(replicas=2)) == []


def test_a_sensor_beside_what_serves_is_left_alone() -> None:
    """It is no leftover of a revision that is over."""
    world = World(replicas=3)
    world.settle()
    key = key_of(world.model)
    world.choice = VariantChoice(key, Variant.AUTOREGRESSIVE, sensor=True)
    world.settle()

    assert scaled(world) == []
    world.edit(replicas=5)
    assert scaled(world) == [4]
