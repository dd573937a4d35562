"""A HorizontalPodAutoscaler and the product's tuner on the same engines, under steady arrivals."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.virtual_time.autoscaler import Rule, autoscaling, in_flight, queue
from local.virtual_time.clock import run
from local.virtual_time.scene import Scene, policy_for

WINDOW = 5.0
"""Seconds: the shortest window of the default policy."""
SLOTS = 32
TOKENS = 256
"""Of an answer, on average."""
PINNED = 7

GROUP = choose_group("Qwen/Qwen3.6-27B", "dflash", "gsm8k")
"""Best at K=11 with 8 requests, at 7 with 16 and at 3 with 32: a replica more is another K."""

SLOW = 4.0
"""Steps four times as long as in the table, so that there are fewer of them to play."""

DOCUMENTED = Rule(in_flight, SLOTS / 2, up=60.0, down=300.0)
"""As the docs have it."""
SETTLING, STEADY = 720.0, 600.0


class Course:
    """What was played: K at a batch of 12 at the end of each window, and changes of replicas."""

    def __init__(self, lengths: list[int], changes: list[tuple[float, int]]) -> None:
        self.lengths = lengths
        self.changes = changes

    def late(self) -> tuple[int, int]:
        """Changes of (replicas, K) once there was time to settle."""
        lengths = self.lengths[round(SETTLING / WINDOW) :]
        replicas = sum(at > SETTLING for at, _ in self.changes)
        return replicas, sum(a != b for a, b in itertools.pairwise(lengths))


def played(folder: Path, rule: Rule, load: float, *, pinned: bool = False) -> Course:
    """Requests that come at `load` times the rate that one replica can bear."""
    policy = policy_for(GROUP, max_num_seqs=SLOTS)
    if pinned:
        policy = replace(policy, low=PINNED, high=PINNED)
    scene = Scene(GROUP, folder, policy=policy)

    async def whole() -> Course:
        async with scene.playing():
            scene.change(slowdown=SLOW)
            rate = load * scene.goodput(PINNED, SLOTS) / TOKENS
            lengths = []
            async with autoscaling(scene, rule, rate=rate) as scaled:
                for _ in range(round((SETTLING + STEADY) / WINDOW)):
                    await scene.pass_seconds(WINDOW)
                    lengths.append(scene.length(12))
            return Course(lengths, scaled.changes)

    return run(whole())


@pytest.mark.parametrize("load", [0.8, 1.3])
def test_by_requests_in_flight_neither_goes_back_and_forth(tmp_path: Path, load: float) -> None:
    """The replicas settle as they do with a K that is pinned, and stay; K is changed in few of the
    windows, and none of its changes moves the autoscaler."""
    tuned = played(tmp_path / "tuned", DOCUMENTED, load)
    pinned = played(tmp_path / "pinned", DOCUMENTED, load, pinned=True)

    replicas, switches = tuned.late()
    assert replicas == 0
    assert switches <= 0.05 * STEADY / WINDOW
    assert len(tuned.changes) <= len(pinned.changes) + 1


def test_by_the_queue_alone_replicas_come_and_go_for_ever(tmp_path: Path) -> None:
    """Not the tuner's doing: it is so with K pinned. The docs advise against it."""
    rule = replace(DOCUMENTED, metric=queue, target=SLOTS / 4)

    replicas, _ = played(tmp_path, rule, 1.3, pinned=True).late()

    assert replicas >= 3


def test_the_rule_is_that_of_kubernetes() -> None:
    """Rounded up, the same number within a tenth, never none and never more than allowed."""
    rule = Rule(in_flight, target=16.0, highest=4)

    assert [rule.wanted(total, 2) for total in (0, 16, 28, 29, 35, 36, 49, 900)] == [
        *(1, 1, 2, 2, 2, 3, 4, 4),
    ]
