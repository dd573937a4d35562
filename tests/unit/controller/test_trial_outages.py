"""Hub, registry or node are away for longer than a start may take: a trial waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.controller.seen.times import rfc3339, unix
from tests.unit.controller.test_start_failures import asked, changed, ended
from tests.unit.controller.test_status import NOW
from tests.unit.controller.world import World

IMAGE = {"waiting": {"reason": "ImagePullBackOff", "message": "connection refused"}}
RUNNING = {"running": {"startedAt": rfc3339(unix(NOW) + 99_999)}}


def at(world: World, seconds: float) -> None:
    """So long after the first pod of the revision on trial got its node."""
    world.now = unix(NOW) + seconds


def on_trial(world: World, **status: Any) -> None:
    """Its pod got its node at `NOW`."""
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW}
    for pod in world.seen().pods:
        if pod.revision == asked(world):
            world.set_pod(pod.name, status={"conditions": [placed], **status})
    world.act()


@pytest.mark.parametrize("name", ["hub-unreachable", "no-gpu"])
def test_an_outage_may_last_longer_than_a_start(name: str) -> None:
    """Hub and node come back some time; the revision is as sound as before."""
    world = changed()
    ended(world, name, starts=4)
    at(world, 100_000)
    on_trial(world)
    assert world.seen().standing(asked(world)) is Standing.TRIAL


def test_an_image_may_come_late_and_its_engine_has_its_time_from_then_on() -> None:
    """A registry that is down is no fault of the revision; an engine that never answers is."""
    world = changed()
    at(world, 100_000)
    on_trial(world, containerStatuses=[{"name": "engine", "state": IMAGE}])
    on_trial(world, containerStatuses=[{"name": "engine", "state": RUNNING}])
    assert world.seen().standing(asked(world)) is Standing.TRIAL

    at(world, 200_000)
    world.act()
    assert world.seen().standing(asked(world)) is Standing.BAD
