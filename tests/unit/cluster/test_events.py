"""Events: told once, in the background, and never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import pytest

from speculative_operator.cluster.client import Client
from speculative_operator.cluster.events import (
    LONGEST_NOTE,
    MOST_REMEMBERED,
    MOST_WAITING,
    QUIET_SECONDS,
    Event,
    EventRecorder,
)
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.errors import ClusterFault

QWEN = Reference("SpeculativeModel", "prod", "qwen")


class ApiServer:
    """Takes Events, or fails so often."""

    def __init__(self) -> None:
        self.created: asyncio.Queue[Manifest] = asyncio.Queue()
        self.faults = 0

    async def create(self, manifest: Manifest) -> Manifest:
        if self.faults:
            self.faults -= 1
            raise ClusterFault("the API server is down")
        self.created.put_nowait(manifest)
        return manifest


class Recorded:
    """A recorder over such a server, on a clock that tests set."""

    def __init__(self) -> None:
        self.server = ApiServer()
        self.now = 0.0
        self.recorder = EventRecorder(
            cast(Client, self.server), instance="operator-1", clock=lambda: self.now
        )

    def tell(self, message: str, *, warning: bool = False) -> None:
        self.recorder.tell(Event(QWEN, "m1", "FellBack", message, warning))

    async def sent(self, number: int) -> list[Manifest]:
        """The first Events that are sent."""
        sending = asyncio.create_task(self.recorder.run())
        events = [await self.server.created.get() for _ in range(number)]
        sending.cancel()
        return events


@pytest.fixture
def recorded() -> Recorded:
    """A recorder that has told nothing."""
    return Recorded()


async def test_an_event_is_about_the_model(recorded: Recorded) -> None:
    """`kubectl describe` finds it by the UID, and shows who said it."""
    recorded.tell("batch 1-4: K 4 -> 0", warning=True)

    (event,) = await recorded.sent(1)

    assert event["metadata"]["namespace"] == "prod"
    assert event["regarding"] == {
        "apiVersion": "speculation.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "namespace": "prod",
        "name": "qwen",
        "uid": "m1",
    }
    told = {key: event[key] for key in ("reason", "note", "type", "reportingInstance")}
    assert told == {
        "reason": "FellBack",
        "note": "batch 1-4: K 4 -> 0",
        "type": "Warning",
        "reportingInstance": "operator-1",
    }


async def test_the_same_words_are_told_once_in_a_while(recorded: Recorded) -> None:
    """What is decided to and fro would else fill the list."""
    recorded.tell("a")
    recorded.now = QUIET_SECONDS - 1
    recorded.tell("a")
    recorded.tell("b")
    recorded.now = QUIET_SECONDS
    recorded.tell("a")

    assert [event["note"] for event in await recorded.sent(3)] == ["a", "b", "a"]


async def test_two_events_never_have_one_name(recorded: Recorded) -> None:
    """The second would be refused."""
    recorded.tell("a")
    recorded.tell("b")

    first, second = await recorded.sent(2)

    assert first["metadata"]["name"] != second["metadata"]["name"]


async def test_a_long_note_is_cut(recorded: Recorded) -> None:
    """The API server refuses it whole."""
    recorded.tell("x" * 5000)

    (event,) = await recorded.sent(1)

    assert event["note"] == "x" * LONGEST_NOTE


async def test_a_lost_event_does_not_hold_up_the_next(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing rests on it; the log says what was lost."""
    recorded.server.faults = 1
    recorded.tell("a")
    recorded.tell("b")

    with caplog.at_level(logging.WARNING):
        (event,) = await recorded.sent(1)

    assert event["note"] == "b"
    assert "the API server is down" in caplog.text


async def test_while_nothing_can_be_sent_only_so_many_wait(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """An API server that is down must not fill the memory, nor make anybody wait."""
    with caplog.at_level(logging.WARNING):
        for number in range(MOST_WAITING + 5):
            recorded.tell(str(number))

    assert caplog.text.count("Event dropped") == 5
    assert (await recorded.sent(MOST_WAITING))[-1]["note"] == str(MOST_WAITING - 1)


async def test_what_was_told_is_remembered_within_bounds(recorded: Recorded) -> None:
    """Messages hold numbers, so nearly each is new."""
    for number in range(MOST_REMEMBERED + 5):
        recorded.tell(str(number))

    assert len(recorded.recorder._told) == MOST_REMEMBERED
