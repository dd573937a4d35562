"""The work queue's contract, a sentence each."""

from __future__ import annotations

import asyncio
import time

import pytest

from speculative_operator.cluster.queue import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    REST,
    Backlog,
    BackOff,
    Done,
    Outcome,
    WorkQueue,
)


@pytest.fixture
def backlog() -> Backlog[str]:
    """An empty one."""
    return Backlog()


def test_a_key_waits_once_however_often_it_is_added(backlog: Backlog[str]) -> None:
    """A hundred events of one model are one pass."""
    for _ in range(100):
        backlog.add("a")

    assert [backlog.take(0), backlog.take(0)] == ["a", None]


def test_keys_are_taken_in_the_order_of_their_addition(backlog: Backlog[str]) -> None:
    """Nobody is overtaken, so nobody starves."""
    for key in "abc":
        backlog.add(key)
    backlog.add("a")

    assert [backlog.take(0) for _ in range(3)] == ["a", "b", "c"]


def test_two_workers_never_hold_one_key(backlog: Backlog[str]) -> None:
    """Two passes over one model would write against each other."""
    backlog.add("a")
    backlog.take(0)
    backlog.add("a")

    assert backlog.take(0) is None


def test_a_key_added_while_it_is_worked_on_is_worked_on_once_more(backlog: Backlog[str]) -> None:
    """The pass may have looked before the event came."""
    backlog.add("a")
    backlog.take(0)
    backlog.add("a")
    backlog.add("a")
    backlog.finish("a", Done(), 0)

    assert [backlog.take(REST), backlog.take(REST)] == ["a", None]


def test_events_shortly_after_a_pass_are_looked_at_together(backlog: Backlog[str]) -> None:
    """A Deployment, its status and its pods come back one by one from what a pass has sent."""
    backlog.add("a")
    backlog.take(0)
    backlog.finish("a", Done(), 0)
    backlog.add("a")
    early = backlog.take(REST / 2)
    backlog.add("a")

    assert early is None
    assert [backlog.take(REST), backlog.take(REST)] == ["a", None]


def test_an_event_of_a_key_at_rest_is_looked_at_at_once(backlog: Backlog[str]) -> None:
    """Drift is repaired without delay, also when nobody has asked for a key meanwhile."""
    backlog.add("a")
    backlog.take(0)
    backlog.finish("a", Done(), 0)
    backlog.add("a")

    assert backlog.take(60) == "a"


def test_a_finished_key_is_not_due_again(backlog: Backlog[str]) -> None:
    """An idle operator does nothing."""
    backlog.add("a")
    backlog.take(0)
    backlog.finish("a", Done(), 0)

    assert backlog.take(1e9) is None
    assert backlog.next_due() is None


def test_a_wait_is_due_when_it_was_asked_for(backlog: Backlog[str]) -> None:
    """Not before, and then at once."""
    backlog.add("a")
    backlog.take(0)
    backlog.finish("a", Done(again_in=5), 10)

    assert (backlog.next_due(), backlog.take(14.9), backlog.take(15)) == (15, None, "a")


def test_the_earliest_of_two_waits_counts(backlog: Backlog[str]) -> None:
    """Whoever asks for a later look does not put off an earlier one."""
    backlog.add_later("a", 10)
    backlog.add_later("a", 20)
    backlog.add_later("a", 5)

    assert [backlog.take(5), backlog.take(100)] == ["a", None]


def test_every_pass_decides_anew_when_the_next_is_due(backlog: Backlog[str]) -> None:
    """A pass that came early has seen all that the later one was for."""
    backlog.add_later("a", 10)
    backlog.add("a")
    backlog.take(0)
    backlog.finish("a", Done(), 0)

    assert backlog.take(10) is None


def test_faults_back_off_twice_as_long_each_time_up_to_a_limit(backlog: Backlog[str]) -> None:
    """A failing API server is not helped by more requests."""
    pauses = []
    for number in range(20):
        backlog.add("a")
        backlog.take(number)
        backlog.finish("a", BackOff(), number)
        pauses.append((backlog.next_due() or 0.0) - number)

    assert pauses[:4] == [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4, FIRST_PAUSE * 8]
    assert pauses[-1] == LONGEST_PAUSE


def test_back_off_resets_only_after_success(backlog: Backlog[str]) -> None:
    """A wait is a success, an event in between is not."""
    backlog.add("a")
    outcomes: list[Outcome] = [BackOff(), BackOff(), Done(again_in=1), BackOff(), BackOff()]
    for now, outcome in enumerate(outcomes):
        backlog.take(now)
        backlog.finish("a", outcome, now)
        due = backlog.next_due()
        backlog.add("a")

    assert due == now + FIRST_PAUSE * 2


def test_an_event_does_not_wait_for_the_back_off(backlog: Backlog[str]) -> None:
    """It may be what cures the fault."""
    backlog.add("a")
    backlog.take(0)
    backlog.finish("a", BackOff(), 0)
    backlog.add("a")

    assert REST < FIRST_PAUSE
    assert backlog.take(REST) == "a"


async def test_no_more_keys_than_workers_are_worked_on_at_once() -> None:
    """The API server is shared with others."""
    queue: WorkQueue[int] = WorkQueue(time.monotonic)
    running, most, all_done = 0, 0, asyncio.Event()
    left = set(range(20))

    async def work(key: int) -> Outcome:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        left.discard(key)
        if not left:
            all_done.set()
        return Done()

    for key in left:
        queue.add(key)
    async with asyncio.timeout(10):
        task = asyncio.create_task(queue.run(work, workers=3))
        await all_done.wait()
    task.cancel()

    assert most == 3


async def test_a_key_added_to_an_idle_queue_is_worked_on_at_once() -> None:
    """The queue sleeps until something is added; nothing is polled."""
    queue: WorkQueue[str] = WorkQueue(time.monotonic)
    worked: asyncio.Queue[str] = asyncio.Queue()

    async def work(key: str) -> Outcome:
        await worked.put(key)
        return Done()

    task = asyncio.create_task(queue.run(work, workers=2))
    async with asyncio.timeout(10):
        for key in ("a", "b", "a"):
            queue.add(key)
            assert await worked.get() == key
    task.cancel()


async def test_a_cancelled_queue_leaves_no_work_behind() -> None:
    """A lost Lease must stop every write."""
    queue: WorkQueue[str] = WorkQueue(time.monotonic)
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(_: str) -> Outcome:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Done()

    queue.add("a")
    task = asyncio.create_task(queue.run(work, workers=1))
    await started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert ended.is_set()
