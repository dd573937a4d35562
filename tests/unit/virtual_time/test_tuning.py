"""The product's tuner on simulated engines: what changes, it follows; what is no evidence, not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.virtual_time.scene import Scene, play, policy_for
from speculative_operator.api.conditions import ConditionStatus, EventReason, Reason
from speculative_operator.api.tuning import TuningMode

WINDOW = 5.0
"""Seconds: the shortest window of the default policy."""

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")
"""Best at K=6 or 5 with 16 requests; speculation pays 1.6 times."""

PINNED = replace(policy_for(GROUP), low=3, high=3)
"""One schedule for ever: nothing else is tried."""


def settled(scene: Scene, batch: int) -> bool:
    """At the best live K or within 3% of its goodput."""
    return scene.goodput(scene.length(batch), batch) >= 0.97 * scene.goodput(
        scene.best(batch), batch
    )


def healthy(scene: Scene) -> ConditionStatus:
    """The condition SpeculationHealthy as the tuner would have it now."""
    return scene.view.healthy.status


def test_a_collapse_of_acceptance_leads_off_and_its_recovery_back_on(tmp_path: Path) -> None:
    """A draft goes stale and is repaired: no latch in either direction."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(40 * WINDOW)
        assert scene.length(16) > 0
        scene.change(acceptance=0.05)
        await scene.pass_seconds(20 * WINDOW)
        assert scene.length(16) == 0
        assert healthy(scene) is ConditionStatus.FALSE
        scene.change(acceptance=1.0)
        await scene.pass_seconds(120 * WINDOW)
        assert scene.length(16) > 0
        assert healthy(scene) is ConditionStatus.TRUE
        assert settled(scene, 16)

    play(Scene(GROUP, tmp_path), script)


def test_a_dead_draft_is_left_within_four_windows(tmp_path: Path) -> None:
    """Weights of another model: every step pays for drafts that nobody accepts."""

    async def script(scene: Scene) -> None:
        scene.change(acceptance=0.0)
        scene.send(16)
        await scene.pass_seconds(5 * WINDOW)
        assert scene.length(16) == 0

    play(Scene(GROUP, tmp_path), script)


def test_where_no_length_pays_it_ends_without_drafts(tmp_path: Path) -> None:
    """Acceptance is healthy; only the measured cost says no."""

    async def script(scene: Scene) -> None:
        scene.change(speculation_cost=2.5)
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        assert scene.best(16) == 0
        assert scene.length(16) == 0
        assert healthy(scene) is ConditionStatus.TRUE

    play(Scene(GROUP, tmp_path), script)


def test_speculation_comes_back_when_its_cost_does(tmp_path: Path) -> None:
    """At K=0 nothing is seen of drafts, so only looks that never end for ever can find out."""

    async def script(scene: Scene) -> None:
        scene.change(speculation_cost=2.5)
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        assert scene.length(16) == 0
        scene.change(speculation_cost=1.0)
        await scene.pass_seconds(120 * WINDOW)
        assert settled(scene, 16)

    play(Scene(GROUP, tmp_path), script)


def test_each_load_gets_its_own_length(tmp_path: Path) -> None:
    """1, 8, then 32 requests at a time; at every one the K of that batch is found."""

    async def script(scene: Scene) -> None:
        for concurrency in (1, 8, 32):
            scene.send(concurrency)
            await scene.pass_seconds(60 * WINDOW)
            assert settled(scene, concurrency), concurrency

    play(Scene(GROUP, tmp_path), script)


def test_a_killed_operator_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Its memory is the ConfigMap, here as texts through the product's own code."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        before = scene.length(16)
        await scene.stop_operator()
        await scene.pass_seconds(10 * WINDOW)
        scene.start_operator()
        await scene.pass_seconds(3 * WINDOW)
        assert scene.length(16) == before

    play(Scene(GROUP, tmp_path), script)


@pytest.mark.parametrize("fault", ["vanished", "truncated", "nan", "two-models", "unreachable"])
def test_a_broken_page_changes_nothing_and_is_told(tmp_path: Path, fault: str) -> None:
    """No evidence is never zero: the length stays and a condition says why."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        before = scene.length(16)
        scene.change(page=fault)
        await scene.pass_seconds(30 * WINDOW)
        assert scene.length(16) == before
        assert ConditionStatus.TRUE not in (scene.view.tuned.status, scene.view.healthy.status)
        scene.change(page="none")
        await scene.pass_seconds(10 * WINDOW)
        assert healthy(scene) is ConditionStatus.TRUE

    play(Scene(GROUP, tmp_path), script)


@pytest.mark.parametrize("happens", ["reset", "restart"])
def test_counters_that_start_again_change_nothing(tmp_path: Path, happens: str) -> None:
    """Differences over a restart would read as zero acceptance."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        before = scene.length(16)
        if happens == "reset":
            scene.change(page="reset")
        else:
            scene.restart_engine("pod-0")
        await scene.pass_seconds(4 * WINDOW)
        assert scene.length(16) == before
        assert healthy(scene) is ConditionStatus.TRUE

    play(Scene(GROUP, tmp_path), script)


def test_a_hung_engine_is_no_evidence(tmp_path: Path) -> None:
    """/health says 200 and requests are running; only the still counters tell."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        before = scene.length(16)
        scene.change(hung=True)
        await scene.pass_seconds(30 * WINDOW)
        assert scene.length(16) == before
        assert healthy(scene) is not ConditionStatus.TRUE

    play(Scene(GROUP, tmp_path), script)


def test_a_schedule_that_the_kubelet_missed_is_handed_on_again(tmp_path: Path) -> None:
    """Its two watches race: the first two touches of the pod bring nothing."""

    async def script(scene: Scene) -> None:
        scene.schedules.lost = 2
        scene.send(16)
        await scene.pass_seconds(4 * WINDOW)
        assert scene.schedules.attempts[:3] == [1, 2, 3]
        assert scene.hash_in_force("pod-0") is not None

    play(Scene(GROUP, tmp_path, policy=PINNED), script)


def test_a_schedule_that_never_arrives_is_told(tmp_path: Path) -> None:
    """What was decided is not what is played, and status must not claim it."""

    async def script(scene: Scene) -> None:
        scene.schedules.lost = 1000
        scene.send(16)
        await scene.pass_seconds(12 * WINDOW)
        assert scene.view.tuned.reason is Reason.SCHEDULE_NOT_APPLIED
        assert len(scene.schedules.attempts) <= 4

    play(Scene(GROUP, tmp_path, policy=PINNED), script)


def test_recommend_says_and_does_nothing(tmp_path: Path) -> None:
    """The mode for who wants to see advice before trusting it."""
    group = choose_group("Qwen/Qwen3.5-27B", "dflash", "mbpp")
    policy = replace(policy_for(group), mode=TuningMode.RECOMMEND)

    async def script(scene: Scene) -> None:
        scene.change(speculation_cost=2.5)
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        assert scene.length(16) == policy.initial
        (advice, *_) = scene.view.decisions
        true_gain = scene.goodput(advice.after, 16) / scene.goodput(policy.initial, 16) - 1
        assert advice.advised
        assert scene.goodput(advice.after, 16) >= 0.97 * scene.goodput(scene.best(16), 16)
        assert advice.gain == pytest.approx(true_gain, abs=0.1)
        told = re.search(r"about \+(\d+)% goodput", scene.view.tuned.message)
        assert told is not None
        assert int(told[1]) / 100 == pytest.approx(true_gain, abs=0.1)

    play(Scene(group, tmp_path, policy=policy), script)


def test_objective_latency_ends_at_shorter_steps_within_the_loss(tmp_path: Path) -> None:
    """K=6 brings most here; K=4 brings 2% less with steps that are a sixth shorter."""
    policy = replace(policy_for(GROUP), throughput_loss=0.05)

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(60 * WINDOW)
        assert scene.length(16) < scene.best(16)
        assert scene.goodput(scene.length(16), 16) >= 0.93 * scene.goodput(scene.best(16), 16)
        assert "shortest steps within 5%" in scene.view.tuned.message
        assert any("steps -" in change.message for change in scene.view.decisions)

    play(Scene(GROUP, tmp_path, policy=policy), script)


def test_equal_bounds_pin_the_length_at_once(tmp_path: Path) -> None:
    """The user's word needs no evidence."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(10 * WINDOW)
        scene.set_policy(replace(scene.policy, low=2, high=2))
        await scene.pass_seconds(2 * WINDOW)
        assert scene.length(16) == 2
        await scene.pass_seconds(30 * WINDOW)
        assert scene.length(16) == 2

    play(Scene(GROUP, tmp_path), script)


def test_replicas_are_one_evidence(tmp_path: Path) -> None:
    """Three engines with four requests each: their windows are added, their schedule is one."""

    async def script(scene: Scene) -> None:
        scene.send(4)
        await scene.pass_seconds(60 * WINDOW)
        assert settled(scene, 4)
        assert set(scene.view.replicas) == {"pod-0", "pod-1", "pod-2"}

    play(Scene(GROUP, tmp_path, replicas=3), script)


def test_a_settled_tuner_stays_where_it_is(tmp_path: Path) -> None:
    """Hysteresis: noise alone must not move the length to and fro."""

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(80 * WINDOW)
        before = len(scene.view.decisions), scene.length(16)
        await scene.pass_seconds(40 * WINDOW)
        assert (len(scene.view.decisions), scene.length(16)) == before

    play(Scene(GROUP, tmp_path), script)


def test_the_same_seed_plays_the_same_scene(tmp_path: Path) -> None:
    """A failing scene must fail again."""
    written = []
    for name in ("first", "second"):
        scene = Scene(GROUP, tmp_path / name, seed=5)

        async def script(scene: Scene) -> None:
            scene.send(16)
            await scene.pass_seconds(20 * WINDOW)

        play(scene, script)
        written.append(scene.schedules.written)

    assert written[0] == written[1]
    assert written[0]


def test_a_fallback_is_an_event_with_evidence(tmp_path: Path) -> None:
    """Nobody watches status all day."""

    async def script(scene: Scene) -> None:
        scene.change(acceptance=0.0)
        scene.send(16)
        await scene.pass_seconds(10 * WINDOW)
        assert EventReason.FELL_BACK in {notice.reason for _, notice in scene.record.notices}
        assert scene.view.healthy.reason is Reason.NO_ACCEPTANCE

    play(Scene(GROUP, tmp_path), script)
