"""An engine that is played up to now whenever somebody looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local.simulated_engine.arguments import Arguments, Speculation
from local.simulated_engine.draft import STILL, Draft, Noise
from local.simulated_engine.faults import PageUnreachable
from local.simulated_engine.table import read_table
from local.virtual_time.clock import EPOCH
from local.virtual_time.engine import Traffic, VirtualEngine

GROUP = read_table()[0]


def an_engine(folder: Path, *, noise: Noise = STILL) -> VirtualEngine:
    folder.mkdir(exist_ok=True)
    arguments = Arguments(
        model=GROUP.target,
        served_names=(GROUP.target,),
        host="",
        port=0,
        max_batch=16,
        shutdown_timeout=0.0,
        api_key=None,
        data_parallel=1,
        speculation=Speculation("mtp", 5, ((1, 12, 5), (13, 13, 3), (14, 14, 1), (15, 16, 0))),
    )
    return VirtualEngine(arguments, Draft(GROUP, noise=noise), folder, epoch=EPOCH, seed=1)


def page(engine: VirtualEngine, now: float) -> dict[str, Any]:
    return dict(json.loads(engine.page(now)))


def total(engine: VirtualEngine, now: float, column: str, **wanted: object) -> float:
    state = page(engine, now)
    rows = [dict(zip(state["columns"], row, strict=True)) for row in state["rows"]]
    return sum(
        float(row[column])
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
    )


def test_how_often_one_looks_changes_nothing(tmp_path: Path) -> None:
    """Else a tuner that polls more would see other engines."""
    often, once = (an_engine(tmp_path / name, noise=Noise()) for name in ("often", "once"))
    for engine in (often, once):
        engine.send(0.0, Traffic(4))

    for tenth in range(200):
        often.page(tenth / 10)

    assert page(often, 20.0)["rows"] == page(once, 20.0)["rows"]


def test_a_schedule_is_played_once_the_reader_has_looked(tmp_path: Path) -> None:
    """The plugin rereads twice a second, here as there."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(4))
    engine.play(10.1)

    engine.write_schedule(10.1, '{"protocol":1,"table":[[1,16,1]]}')

    assert page(engine, 10.2)["hash_read"] is None
    assert page(engine, 11.0)["hash_in_force"] is not None
    assert total(engine, 20.0, "steps", k=1) > 100


def test_the_page_counts_what_the_traffic_brings(tmp_path: Path) -> None:
    """With requests all the time, every second belongs to a step."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(4))

    seconds = total(engine, 60.0, "seconds")

    assert 59 < seconds <= 60
    assert page(engine, 60.0)["running"] == 4


def test_idle_time_is_booked_on_no_step(tmp_path: Path) -> None:
    """Else a quiet night would make K look slow."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(1, max_tokens=20))
    engine.send(10.0, Traffic(0))
    before = total(engine, 11.0, "seconds")

    assert total(engine, 100.0, "seconds") == before
    assert page(engine, 100.0)["idle_seconds"] > 88


def test_a_hung_engine_stands_still_with_its_requests(tmp_path: Path) -> None:
    """The one sign of a hang that an operator can see."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(4))
    engine.change(10.0, hung=True)
    before = total(engine, 10.0, "steps")

    assert total(engine, 50.0, "steps") == before
    assert page(engine, 50.0)["running"] == 4
    assert page(engine, 50.0)["idle_seconds"] > 39


def test_a_restarted_engine_counts_from_zero(tmp_path: Path) -> None:
    """With another start time, by which a reader recognises it."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(4))
    before = page(engine, 10.0)

    engine.restart(10.0)

    assert page(engine, 10.0)["rows"] == []
    assert page(engine, 10.0)["started"] == before["started"] + 10
    assert total(engine, 20.0, "steps") > 0


def test_a_dead_engine_gives_no_page_until_it_starts_again(tmp_path: Path) -> None:
    """As while its container is being restarted."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(4))
    engine.change(10.0, crash="HSA_STATUS_ERROR")

    with pytest.raises(PageUnreachable, match="HSA_STATUS_ERROR"):
        engine.page(11.0)
    engine.restart(20.0)

    assert total(engine, 30.0, "steps") > 0


def test_slow_steps_are_slow_from_then_on(tmp_path: Path) -> None:
    """Conditions change the next step and no earlier one."""
    engine = an_engine(tmp_path)
    engine.send(0.0, Traffic(4))
    before = total(engine, 30.0, "steps")

    engine.change(30.0, slowdown=3.0)

    assert total(engine, 60.0, "steps") - before == pytest.approx(before / 3, rel=0.1)


def test_an_unreachable_page_is_an_error(tmp_path: Path) -> None:
    """The port turns it into the product's own EngineSilent."""
    engine = an_engine(tmp_path)
    engine.change(0.0, page="unreachable")

    with pytest.raises(PageUnreachable):
        engine.page(1.0)


def test_requests_of_an_open_loop_come_however_many_wait(tmp_path: Path) -> None:
    """As users do; and at the same times however often one looks."""
    often, once = (an_engine(tmp_path / name) for name in ("often", "once"))
    for engine in (often, once):
        engine.send(0.0, Traffic(rate=40.0))

    for second in range(60):
        often.page(float(second))
    running, waiting = once.load(60.0)

    assert often.load(60.0) == (running, waiting)
    assert running == 16
    assert waiting > 400
    once.send(60.0, Traffic())
    assert sum(once.load(1000.0)) == 0
