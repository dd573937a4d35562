"""The product's tuner on a few simulated engines of which one is odd, or which are all faulty."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.virtual_time.scene import Scene, play
from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason

WINDOW = 5.0
"""Seconds: the shortest window of the default policy."""

INTO_A_WINDOW = 2.6
"""Seconds: what breaks keeps to no window."""

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")


def reason(scene: Scene) -> Reason:
    """Of the condition SpeculationHealthy as the tuner would have it now."""
    return scene.view.healthy.reason


ODD: dict[str, dict[str, object]] = {
    "a dead draft": {"acceptance": 0.0},
    "a stale draft": {"acceptance": 0.6},
    "a slow GPU": {"slowdown": 1.5},
    "silent drafts": {"silent": True},
    "counters that contradict": {"page": "contradictory"},
}


@pytest.mark.parametrize(
    ("odd", "replicas"), [*((odd, 2) for odd in ODD), ("a dead draft", 3), ("a slow GPU", 3)]
)
def test_one_odd_replica_is_named_within_three_windows_and_changes_nothing(
    tmp_path: Path, odd: str, replicas: int
) -> None:
    """What the sound ones show is what decides. The window in which it breaks is one of the three,
    although it shows the fault only in part."""

    async def script(scene: Scene) -> None:
        scene.send(8)
        await scene.pass_seconds(40 * WINDOW + INTO_A_WINDOW)
        before = scene.length(8)
        assert reason(scene) is Reason.HEALTHY
        scene.change_engine("pod-1", **ODD[odd])
        await scene.pass_seconds(3 * WINDOW)
        assert reason(scene) is Reason.REPLICA_OUT_OF_LINE
        assert "pod-1" in scene.view.healthy.message
        assert "pod-1" in (scene.view.replicas["pod-1"].message or "")
        await scene.pass_seconds(20 * WINDOW)
        assert reason(scene) is Reason.REPLICA_OUT_OF_LINE
        assert scene.goodput(scene.length(8), 8) >= 0.97 * scene.goodput(before, 8)
        scene.change_engine("pod-1", acceptance=1.0, slowdown=1.0, silent=False, page="none")
        await scene.pass_seconds(8 * WINDOW)
        assert reason(scene) is Reason.HEALTHY

    scene = Scene(GROUP, tmp_path, replicas=replicas)
    play(scene, script)
    told = [notice.reason for _, notice in scene.record.notices]
    assert told.count(EventReason.REPLICA_OUT_OF_LINE) == 1
    assert told.count(EventReason.REPLICA_IN_LINE) == 1


def test_replicas_alike_are_never_told_to_be_odd(tmp_path: Path) -> None:
    """Every engine has noise and a drift of its own."""

    async def script(scene: Scene) -> None:
        scene.send(4)
        await scene.pass_seconds(120 * WINDOW)

    scene = Scene(GROUP, tmp_path, replicas=3)
    play(scene, script)
    told = {view.healthy.reason for _, view in scene.record.views}
    assert told <= {Reason.HEALTHY, Reason.NO_TRAFFIC}


FAULTS: dict[str, tuple[dict[str, object], Reason]] = {
    "a dead draft": ({"acceptance": 0.0}, Reason.NO_ACCEPTANCE),
    "a draft that hardly fits": ({"acceptance": 0.05}, Reason.WEAK_ACCEPTANCE),
    "silent drafts": ({"silent": True}, Reason.NO_DRAFTS),
    "counters that contradict": ({"page": "contradictory"}, Reason.COUNTERS_INCONSISTENT),
}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_all_replicas_is_told_by_its_own_name(
    tmp_path: Path, fault: str, replicas: int
) -> None:
    """Each asks for another remedy; where all have it, none is out of line."""
    world, expected = FAULTS[fault]

    async def script(scene: Scene) -> None:
        scene.send(8)
        await scene.pass_seconds(30 * WINDOW)
        scene.change(**world)
        await scene.pass_seconds(4 * WINDOW)
        assert reason(scene) is expected
        assert scene.view.healthy.status is ConditionStatus.FALSE

    play(Scene(GROUP, tmp_path, replicas=replicas), script)


def test_harder_prompts_on_all_replicas_are_no_fault(tmp_path: Path) -> None:
    """Traffic changed; K follows and nobody is alarmed."""

    async def script(scene: Scene) -> None:
        scene.send(8)
        await scene.pass_seconds(30 * WINDOW)
        scene.change(acceptance=0.6)
        for _ in range(20):
            await scene.pass_seconds(WINDOW)
            assert reason(scene) in {Reason.HEALTHY, Reason.PAUSED}

    play(Scene(GROUP, tmp_path, replicas=2), script)


def test_traffic_of_one_prompt_is_told_and_real_traffic_ends_it(tmp_path: Path) -> None:
    """A load generator must not be taken for users."""

    async def script(scene: Scene) -> None:
        scene.send(8, alike=True)
        await scene.pass_seconds(12 * WINDOW)
        assert reason(scene) is Reason.PROMPTS_REPEAT
        assert scene.view.healthy.status is ConditionStatus.UNKNOWN
        scene.send(8)
        await scene.pass_seconds(20 * WINDOW)
        assert reason(scene) is Reason.HEALTHY

    play(Scene(GROUP, tmp_path), script)
