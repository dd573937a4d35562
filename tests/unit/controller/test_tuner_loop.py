"""The tuner's loop over time: restarts, rest, and many models at once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from speculative_operator.controller.tuner import tuner as tuner_module
from speculative_operator.controller.tuner.ports import Replica, TunedModel, TuningView
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning import memory
from speculative_operator.tuning.history import entries
from speculative_operator.tuning.memory import from_data
from speculative_operator.tuning.schedule import ScheduleFile
from tests.support.tuner_world import STEPS_A_SECOND, World, a_model, length, pass_seconds
from tests.support.windows import a_policy


@pytest.fixture
def world() -> World:
    return World()


# Restarts of the operator, and rest.


async def test_a_new_operator_goes_on_where_the_old_one_stopped(world: World) -> None:
    """K stays; what the engines did meanwhile is one window, after which a look may be due."""
    a_model(world)
    await pass_seconds(world, Tuner(world.ports()), 90)
    before = world.texts["model"]
    world.engines["model-0"].traffic = None
    await pass_seconds(world, None, 30)

    await pass_seconds(world, Tuner(world.ports()), 120)

    assert json.loads(world.texts["model"])["table"] == json.loads(before)["table"]
    assert world.views["model"].main_length == 2


async def test_a_memory_that_somebody_deletes_is_saved_again_at_once(world: World) -> None:
    """Else an operator that dies within the next minute would leave a new one with nothing."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 90)
    before = from_data(world.memories["model"].data, world.memories["model"].binary_data)
    world.engines["model-0"].traffic = None
    del world.memories["model"]

    await pass_seconds(world, tuner, 15)

    after = from_data(world.memories["model"].data, world.memories["model"].binary_data)
    assert after.revisions.keys() == before.revisions.keys()


async def test_restarts_lose_nothing_and_count_nothing_twice(world: World) -> None:
    """Every step of the engine is in exactly one window of the saved history."""
    a_model(world)
    for _ in range(12):
        tuner = Tuner(world.ports())
        await pass_seconds(world, tuner, 17)
        await pass_seconds(world, None, 3)
    data = world.memories["model"]
    kept = from_data(data.data, data.binary_data)

    windows = [entry.window for entry in entries(kept.history) if entry.window is not None]
    absorbed = sum(counts.steps for window in windows for counts in window.rows.values())
    before_the_first_page = STEPS_A_SECOND
    done = sum(counts.steps for counts in kept.bases["model-0"].rows.values())
    assert len(windows) > 2
    assert absorbed == done - before_the_first_page


async def test_at_rest_nothing_is_written(world: World) -> None:
    """Twenty models without traffic: no write for ten minutes once all is settled."""
    for number in range(20):
        a_model(world, uid=f"model-{number}")
    for engine in world.engines.values():
        engine.traffic = None
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 30)
    world.log.clear()
    told = dict(world.views)

    await pass_seconds(world, tuner, 600)

    assert world.log == []
    assert world.views == told


async def test_under_steady_traffic_saves_are_rare(world: World) -> None:
    """Once a minute when an estimate has moved by more than its error, and with each look."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 300)
    world.log.clear()

    await pass_seconds(world, tuner, 600)

    assert len([kind for kind, _ in world.log if kind == "memory"]) <= 30


async def test_another_revision_has_a_state_of_its_own(world: World) -> None:
    """It starts from its initial length; a rollback takes its own state back."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 60)
    tuned = world.models[0]

    world.models[0] = replace(tuned, key="rev2", policy=a_policy(initial=1))
    await tuner.tick()
    assert length(world) == 1

    world.models[0] = tuned
    await tuner.tick()
    assert length(world) == 2


async def test_a_model_that_is_gone_is_forgotten(world: World) -> None:
    """Its engines are not read for ever."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 10)
    world.models.clear()
    world.reads.clear()

    await pass_seconds(world, tuner, 30)

    assert world.reads == []


# Many models.


async def test_an_error_of_one_model_concerns_that_model_only(world: World) -> None:
    """Whatever it is."""
    a_model(world, uid="good")
    bad = a_model(world, uid="bad")
    missing = Replica("missing", "missing", "missing", ready=True, routed=True)
    world.models[1] = replace(bad, replicas=(missing,))

    await pass_seconds(world, Tuner(world.ports()), 60)

    assert length(world, "good") == 2
    assert "bad" not in world.views


async def test_a_slow_engine_delays_its_own_model_only(world: World) -> None:
    """It may take its five seconds to be silent; the others go on."""
    a_model(world, uid="slow")
    a_model(world, uid="quick")
    ports = world.ports()
    never = asyncio.Event()
    read = ports.pages.read

    async def slowly(model: TunedModel, replica: Replica) -> object:
        if replica.uid == "slow-0":
            await never.wait()
        return await read(model, replica)

    ports.pages.read = slowly  # type: ignore[method-assign,assignment]
    told = asyncio.Event()
    report = ports.report.tuning

    def tell(model: TunedModel, view: TuningView) -> None:
        report(model, view)
        told.set()

    ports.report.tuning = tell  # type: ignore[method-assign]
    running = asyncio.create_task(Tuner(ports).run())
    await told.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert set(world.views) == {"quick"}


async def test_a_large_fleet_is_not_read_faster_than_the_budget(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of 1000 models with five replicas each, and a tenth of the budget: reading is spread
    over the 25 seconds that it needs."""
    monkeypatch.setattr(tuner_module, "READS_A_SECOND", 20.0)
    for number in range(100):
        model = a_model(world, uid=f"model-{number}", replicas=5)
        world.texts[model.uid] = ScheduleFile(model.policy.start_table).to_json()
    for engine in world.engines.values():
        engine.traffic = None
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 3)
    world.reads.clear()

    await pass_seconds(world, tuner, 100)

    assert 60 * 20 <= len(world.reads) <= 120 * 20


async def test_an_idle_model_is_read_every_ten_seconds(world: World) -> None:
    """Often enough to see traffic come, and cheap."""
    a_model(world)
    world.engines["model-0"].traffic = None
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 30)
    world.reads.clear()

    await pass_seconds(world, tuner, 100)

    assert 8 <= len(world.reads) <= 11


async def test_an_engine_that_does_not_answer_is_read_as_one_with_traffic(world: World) -> None:
    """Its requests go on, for all that is known, and the gap ends with the first page."""
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 30)
    world.engines["model-0"].silence = EngineSilent("refused")
    world.reads.clear()

    await pass_seconds(world, tuner, 100)

    assert len(world.reads) >= 18


def test_state_json_is_what_the_design_says() -> None:
    """Its name and version are what the next operator looks for."""
    assert (memory.STATE, memory.BASE, memory.HISTORY) == (
        "state.json",
        "base.json",
        "history.json.gz",
    )
