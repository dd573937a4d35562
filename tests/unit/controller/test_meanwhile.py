"""Replicas while the API server refuses the newest spec, on a cluster of plain dicts."""

from __future__ import annotations

import pytest

from speculative_operator.controller.meanwhile import meanwhile
from tests.unit.controller.world import World

LONGER = {"model": {"maxModelLen": 4096}}


def scaled(world: World) -> list[int]:
    """Replicas that the Deployments should get meanwhile."""
    return [found["spec"]["replicas"] for found in meanwhile(world.model, world.seen())]


@pytest.fixture
def refused() -> World:
    """Two pods serve; the newest spec has a record, but no Deployment: it was refused."""
    world = World(replicas=2)
    world.settle()
    world.edit(replicas=2, **LONGER)
    new = world.desired().new
    assert new is not None
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


def test_a_model_that_never_ran_starts_nothing() -> None:
    """There is nothing that serves."""
    assert scaled(World(replicas=2)) == []
