"""Asking ready engines for their names, in the background and only as often as needed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.seen.names_check import Answer, NamesCheck
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.errors import EngineSilent

MODEL = Reference("SpeculativeModel", "prod", "qwen")
NAMES = {"key": ("qwen",)}


def a_pod(restarts: int = 0, *, ready: bool = True) -> Pod:
    """A pod of the revision `key`."""
    return Pod(
        name="qwen-0",
        namespace="prod",
        uid="p1",
        incarnation=f"p1/{restarts}",
        revision="key",
        address="10.0.0.1",
        ready=ready,
        terminating=False,
        ended=False,
        serving_label="true",
        schedule_mark=None,
        trouble=None,
        placed=True,
    )


@dataclass
class Engine:
    """Answers as it is told, and counts how often it was asked."""

    names: Collection[str] | None = ("qwen",)
    silent: bool = False
    fault: Exception | None = None
    held: asyncio.Event | None = None
    asked: int = 0
    pauses: list[float] = field(default_factory=list)
    paused_often: asyncio.Event = field(default_factory=asyncio.Event)

    async def served_names(self, _: str) -> Collection[str] | None:
        self.asked += 1
        if self.held is not None:
            await self.held.wait()
        if self.fault is not None:
            raise self.fault
        if self.silent:
            raise EngineSilent("no answer within 5 s")
        return self.names

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)
        if len(self.pauses) == 8:
            self.paused_often.set()
            await asyncio.Event().wait()


@pytest.fixture
def engine() -> Engine:
    """One that lists the model's name."""
    return Engine()


async def answers(check: NamesCheck, pod: Pod) -> dict[str, Answer]:
    """What is known of a pod once the engine was asked."""
    told = asyncio.Event()
    known = check.look_at(MODEL, [pod], NAMES, told.set)
    if not known:
        async with asyncio.timeout(10):
            await told.wait()
    return dict(check.look_at(MODEL, [pod], NAMES, told.set))


async def test_an_engine_that_lists_the_name_is_asked_once(engine: Engine) -> None:
    """A pass at rest must cost nothing."""
    check = NamesCheck(engine.served_names, sleep=engine.sleep)
    for _ in range(3):
        assert await answers(check, a_pod()) == {"p1/0": Answer()}

    assert engine.asked == 1


async def test_a_restarted_engine_is_asked_again(engine: Engine) -> None:
    """It may have come up with another model."""
    check = NamesCheck(engine.served_names, sleep=engine.sleep)
    await answers(check, a_pod(restarts=0))
    engine.names = ()

    assert await answers(check, a_pod(restarts=1)) == {
        "p1/1": Answer("Pod qwen-0 does not list qwen.")
    }


async def test_an_engine_behind_a_key_counts_as_answering(engine: Engine) -> None:
    """The operator has no key."""
    engine.names = None
    check = NamesCheck(engine.served_names, sleep=engine.sleep)

    assert await answers(check, a_pod()) == {"p1/0": Answer()}


async def test_a_silent_engine_is_asked_less_and_less_often(engine: Engine) -> None:
    """And says why it does not count."""
    engine.silent = True
    check = NamesCheck(engine.served_names, sleep=engine.sleep)

    (answer,) = (await answers(check, a_pod())).values()
    await engine.paused_often.wait()
    check.forget(MODEL)

    assert answer.problem == "Pod qwen-0 does not answer /v1/models: no answer within 5 s."
    assert engine.pauses == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_a_pod_that_is_not_ready_is_not_asked(engine: Engine) -> None:
    """Its probe has to pass first."""
    check = NamesCheck(engine.served_names, sleep=engine.sleep)

    assert check.look_at(MODEL, [a_pod(ready=False)], NAMES, lambda: None) == {}
    assert engine.asked == 0


@pytest.mark.parametrize("gone", ["model", "pod"])
async def test_asking_ends_with_the_pod_and_with_the_model(engine: Engine, gone: str) -> None:
    """Also before the first answer: else it goes on for ever, for nobody."""
    engine.held = asyncio.Event()
    check = NamesCheck(engine.served_names, sleep=engine.sleep)
    others = asyncio.all_tasks()
    check.look_at(MODEL, [a_pod()], NAMES, lambda: None)
    (asking,) = asyncio.all_tasks() - others

    if gone == "model":
        check.forget(MODEL)
    else:
        check.look_at(MODEL, [], NAMES, lambda: None)
    async with asyncio.timeout(10):
        await asyncio.wait([asking])

    assert asking.cancelled()


async def test_a_fault_of_the_operator_is_told_and_the_engine_asked_again(engine: Engine) -> None:
    """A task that ended unseen would leave the pod not ready for ever."""
    engine.fault = TypeError("a slip")
    check = NamesCheck(engine.served_names, sleep=engine.sleep)

    (answer,) = (await answers(check, a_pod())).values()
    await engine.paused_often.wait()
    check.forget(MODEL)

    assert answer.problem == (
        "Pod qwen-0 could not be asked: a fault of the operator, see its log."
    )
    assert engine.asked == 8
