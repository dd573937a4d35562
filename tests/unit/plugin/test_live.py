"""One engine's live speculation: attribution of steps, change of schedule, faults."""

import json
from dataclasses import replace
from typing import Any

import pytest

from live_speculation.ledger import COLUMNS, Outcome
from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import state
from live_speculation.schedule import Schedule, Trial

ENGINE = Engine("0.33.0", "V1", "eagle3", capacity=4, max_batch=8, lengths=frozenset(range(5)))


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Loop:
    """A synchronous engine loop: one step after the other, drafts from the step before."""

    def __init__(self, engine: Engine = ENGINE) -> None:
        self.clock = Clock()
        self.live = LiveSpeculation(engine, clock=self.clock, wall=lambda: 1_700_000_000.0)
        self.start = [0] + [engine.capacity] * engine.max_batch

    def step(self, batch: int = 2, seconds: float = 0.01, *, more: bool = True) -> tuple[int, int]:
        """(K whose drafts the step verified, K of the drafts that it made)."""
        lookup = self.live.table(self.clock.now) or self.start
        length = lookup[batch]
        step = self.live.scheduled(batch, length, mixed=False)
        self.clock.now += seconds
        drafts = Outcome(batch, batch * step.asked, batch, [batch] * step.asked, [batch])
        outcome = drafts if step.asked else Outcome()
        self.live.finished(step, self.clock.now, 2 * batch, outcome, more=more)
        return step.asked, length

    def rows(self) -> dict[tuple[int, int], dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            dict(zip(COLUMNS, row, strict=True)) for row in self.live.ledger.copy().rows
        ]
        return {(row["k"], row["cell"]): row for row in rows}


def schedule(digest: str, length: int, *trials: Trial) -> Schedule:
    return Schedule(digest, ((1, 8, length),), trials)


def test_without_a_file_the_start_schedule_plays() -> None:
    """The engine must serve before the operator has written anything."""
    loop = Loop()

    assert loop.step() == (4, 4)
    assert loop.live.digest_in_force is None


def test_an_offered_schedule_is_in_force_from_the_next_step_on() -> None:
    """Read is not in force: only the code that hands out K may say so."""
    loop = Loop()
    loop.live.offer(schedule("a" * 12, 1))
    assert loop.live.digest_in_force is None

    assert loop.step() == (4, 1)
    assert loop.live.digest_in_force == "a" * 12
    assert loop.step() == (1, 1)


def test_steps_are_booked_on_the_length_their_drafts_were_asked_for() -> None:
    """The K handed out with a step makes the next step's drafts."""
    loop = Loop()
    for _ in range(10):
        loop.step()
    loop.live.offer(schedule("a" * 12, 1))
    for _ in range(10):
        loop.step()

    rows = loop.rows()
    assert rows[4, 2]["drafts"] == 11 * 2
    assert rows[1, 2]["drafts"] == 9 * 2


def test_the_two_steps_from_a_change_on_are_not_timed() -> None:
    """The first verifies the old length and drafts the new one; the second was seen to be off."""
    loop = Loop()
    for _ in range(10):
        loop.step()
    loop.live.offer(schedule("a" * 12, 1))
    loop.step(seconds=7.0)
    loop.step(seconds=7.0)
    for _ in range(8):
        loop.step()

    rows = loop.rows()
    assert (rows[4, 2]["steps"], rows[1, 2]["steps"]) == (10, 8)
    assert rows[4, 2]["seconds"] == pytest.approx(0.1)
    assert rows[1, 2]["seconds"] == pytest.approx(0.08)


def test_trial_blocks_are_timed_apart_inside_the_same_traffic() -> None:
    """This is what the plugin is for."""
    loop = Loop()
    loop.live.offer(schedule("a" * 12, 4, Trial((1, 8), (0, 2), 0.5, 20, 5)))
    for _ in range(2 * 2 * 20 * 5 + 10):
        _, length = loop.step(seconds=0.01 + 0.01 * loop.live.asked)
        assert length in {0, 2, 4}

    rows = loop.rows()
    for asked in (0, 2):
        assert rows[asked, 2]["steps"] == 5 * 18
        assert rows[asked, 2]["seconds"] / rows[asked, 2]["steps"] == pytest.approx(
            0.01 + 0.01 * asked
        )
    assert loop.live.trials == [((1, 8), 0)]


def test_the_same_content_again_restarts_no_trial() -> None:
    """A kubelet's resync rewrites the file without changing it."""
    loop = Loop()
    wanted = schedule("a" * 12, 4, Trial((1, 8), (0,), 1.0, 1, 9))
    loop.live.offer(wanted)
    for _ in range(5):
        loop.step()
    loop.live.offer(wanted)
    loop.step()

    assert loop.live.trials == [((1, 8), 3)]


def test_another_content_restarts_its_trials() -> None:
    """The operator asks for more rounds by writing them."""
    loop = Loop()
    trial = Trial((1, 8), (0,), 1.0, 1, 9)
    loop.live.offer(schedule("a" * 12, 4, trial))
    for _ in range(5):
        loop.step()
    loop.live.offer(schedule("b" * 12, 4, trial))
    loop.step()

    assert loop.live.trials == [((1, 8), 8)]


def test_a_schedule_of_an_earlier_term_of_the_same_lease_is_refused() -> None:
    """An operator that has lost its leadership may still have written it."""
    loop = Loop()
    loop.live.offer(replace(schedule("a" * 12, 1), lease=("l1", 2)))
    loop.live.offer(replace(schedule("b" * 12, 3), lease=("l1", 1)))

    assert loop.step()[1] == 1
    page = state(loop.live)
    assert page["hash_read"] == "a" * 12
    assert page["error"] == "lease: term 1, but an operator of term 2 has written since"

    loop.live.offer(replace(schedule("c" * 12, 2), lease=("l1", 3)))
    assert loop.step()[1] == 2
    assert state(loop.live)["error"] == ""


@pytest.mark.parametrize("lease", [("l2", 0), ("l1", 2), None])
def test_a_schedule_of_another_lease_the_same_term_or_none_plays(
    lease: tuple[str, int] | None,
) -> None:
    """A Lease may be deleted and made again, and the first schedule of a revision has none."""
    loop = Loop()
    loop.live.offer(replace(schedule("a" * 12, 1), lease=("l1", 2)))
    loop.live.offer(replace(schedule("b" * 12, 3), lease=lease))

    assert loop.step()[1] == 3


def test_a_schedule_without_a_lease_makes_no_earlier_term_good() -> None:
    """What was read between them says nothing about who leads."""
    loop = Loop()
    loop.live.offer(replace(schedule("a" * 12, 1), lease=("l1", 2)))
    loop.live.offer(schedule("b" * 12, 2))
    loop.live.offer(replace(schedule("c" * 12, 3), lease=("l1", 1)))

    assert loop.step()[1] == 2


def test_idle_time_is_no_step_time() -> None:
    """A step begins with its scheduling when the engine had nothing to do before."""
    loop = Loop()
    for _ in range(6):
        loop.step()
    loop.step(more=False)
    loop.clock.now += 60.0
    loop.step()

    row = loop.rows()[4, 2]
    assert row["seconds"] == pytest.approx(0.08)
    assert row["clipped"] == 0


def test_time_between_two_steps_of_a_busy_engine_belongs_to_the_second() -> None:
    """Detokenising, queues and sockets are part of what a user waits for."""
    loop = Loop()
    for _ in range(6):
        loop.step()
        loop.clock.now += 0.002

    assert loop.rows()[4, 2]["seconds"] == pytest.approx(6 * 0.01 + 5 * 0.002)


def test_steps_under_way_together_are_timed_from_end_to_end() -> None:
    """Asynchronous scheduling hands out a step while the one before it still runs."""
    live = LiveSpeculation(ENGINE, clock=Clock(), wall=lambda: 0.0)
    live.table(200.0)
    running = live.scheduled(2, 4, mixed=False)
    for number in range(1, 8):
        live.table(200.0 + number * 0.01 - 0.009)
        following = live.scheduled(2, 4, mixed=False)
        live.finished(running, 200.0 + number * 0.01, 4, more=True)
        running = following

    row = live.ledger.copy().rows[0]
    assert row[COLUMNS.index("seconds")] == pytest.approx(0.07)


def test_pipeline_stages_put_the_drafts_as_many_steps_back() -> None:
    """With two stages, two groups of requests take turns."""
    engine = Engine("0.33.0", "V2", "mtp", 4, 8, frozenset({0, 2, 4}), stages=2)
    loop = Loop(engine)
    loop.step()
    loop.live.offer(schedule("a" * 12, 2))

    assert [loop.step()[0] for _ in range(4)] == [4, 4, 2, 2]


def test_an_untunable_engine_reads_but_plays_nothing() -> None:
    """It serves on untouched; the page says that the file was seen."""
    loop = Loop(Engine("0.33.0", capacity=4, max_batch=8, tunable=False, reason="suffix"))
    loop.live.offer(schedule("a" * 12, 1))

    assert loop.step() == (4, 4)
    page = state(loop.live)
    assert (page["hash_read"], page["hash_in_force"]) == ("a" * 12, None)
    assert (page["tunable"], page["reason"]) == (False, "suffix")


def test_a_failed_hook_ends_the_trials_and_is_reported() -> None:
    """Nobody may be left on an arm when the steps are no longer counted."""
    loop = Loop()
    loop.live.offer(schedule("a" * 12, 4, Trial((1, 8), (0,), 1.0, 50, 9)))
    assert loop.step() == (4, 0)

    loop.live.break_off("before a step: KeyError: 'x'")

    assert loop.step() == (0, 4)
    assert state(loop.live)["error"] == "before a step: KeyError: 'x'"


def test_when_only_the_hook_before_a_step_is_broken_the_page_tells() -> None:
    """The file is read, but never in force, and no step comes in."""
    loop = Loop()
    loop.step()
    loop.live.offer(schedule("a" * 12, 1))
    loop.clock.now += 30.0

    page = state(loop.live)
    assert (page["hash_read"], page["hash_in_force"]) == ("a" * 12, None)
    assert page["idle_seconds"] == 30.0


def test_the_page_is_plain_json_with_every_agreed_key() -> None:
    """The tuner parses exactly this."""
    loop = Loop()
    loop.live.offer(
        Schedule("a" * 12, ((1, 8, 4),), (Trial((1, 8), (0,), 0.1, 20, 12),), ("uid", 7))
    )
    for _ in range(6):
        loop.step()

    page = json.loads(json.dumps(state(loop.live)))
    assert list(page) == [
        "protocol", "plugin", "vllm", "runner", "pid", "started", "method", "capacity",
        "tunable", "reason", "measured", "hash_read", "hash_in_force", "error", "lease",
        "running", "waiting", "idle_seconds", "prompts", "trials", "edges", "columns", "rows",
        "positions",
    ]  # fmt: skip
    assert page["lease"] == ["uid", 7]
    assert page["trials"] == [{"batch": [1, 8], "rounds_left": 12}]
    assert page["started"] == 1_700_000_000.0
    assert page["rows"][0][:4] == [4, 2, "decode", 6]
    assert page["positions"][0] == [4, 0, 12, 12]
