"""Restarts off speculation by the whole tuner, on simulated engines in virtual time."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.virtual_time.clock import run
from local.virtual_time.engine import Traffic
from local.virtual_time.rollout import rolling
from local.virtual_time.scene import Scene, policy_for
from speculative_operator.tuning.history import entries
from speculative_operator.tuning.memory import from_data
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.replay import replayed
from speculative_operator.tuning.variant import Variant

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")
CLIENTS = 16
DEAR = 3.0
"""Factor on the cost of steps with drafts: the best K brings .63 of K=0's goodput."""

WINDOW_SECONDS, WINDOWS = 5.0, 1440
STARTUP = 18 * WINDOW_SECONDS
"""Of nothing, as in the benchmark of the facts."""


def lost(folder: Path, limits: RestartLimits, seed: int) -> tuple[float, list[Variant]]:
    """Share of the tokens of an engine without speculation that one under the tuner did not make
    in so many windows, and what it was restarted as."""
    policy = replace(policy_for(GROUP), restart=limits)
    scene = Scene(GROUP, folder, policy=policy, seed=seed)
    plain = scene.engine(99, speculative=False)
    plain.send(0.0, Traffic(CLIENTS))

    async def play() -> tuple[float, list[Variant]]:
        async with scene.playing(), rolling(scene, STARTUP) as rollout:
            scene.change(speculation_cost=DEAR)
            scene.send(CLIENTS)
            await scene.pass_seconds(WINDOWS * WINDOW_SECONDS)
            return rollout.tokens(), rollout.moves

    tokens, moves = run(play())
    return 1 - tokens / plain.generated(WINDOWS * WINDOW_SECONDS), moves


def test_what_led_to_a_restart_is_decided_again_from_the_history(tmp_path: Path) -> None:
    """The windows of engines without speculation are part of the evidence."""
    limits = RestartLimits(wanted=True, surge=True, replicas=2, sensor=True)
    policy = replace(policy_for(GROUP), restart=limits)
    scene = Scene(GROUP, tmp_path, policy=policy, replicas=2)

    async def play() -> list[Variant]:
        async with scene.playing(), rolling(scene, startup=4.0) as rollout:
            scene.change(speculation_cost=DEAR)
            scene.send(CLIENTS)
            await scene.pass_seconds(240)
            scene.change(speculation_cost=1.0)
            for _ in range(60):
                await scene.pass_seconds(10)
                if len(rollout.moves) == 2:
                    break
            return rollout.moves

    moves = run(play())
    (saved,) = scene.memories.kept.values()
    past = list(entries(from_data(saved.data, saved.binary_data).history))
    steps = list(replayed(past))

    assert moves == [Variant.AUTOREGRESSIVE, Variant.SPECULATIVE]
    assert all(step.same for step in steps)
    assert len(steps) == len(past)
    assert {step.decision.variant for step in steps} == set(Variant)
    assert any(entry.occasion.running.window for entry in past)
    assert any(entry.sensor for entry in past)


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_where_speculation_never_pays_a_restart_loses_half_of_what_live_fallback_does(
    tmp_path: Path,
) -> None:
    """The facts have 5.8% and 13.7%, with a start of eighteen windows each."""
    allowed = RestartLimits(wanted=True, downtime=True)
    live, moved = lost(tmp_path / "live", RestartLimits(), 0)
    assert moved == []
    losses = []
    for seed in range(4):
        loss, moves = lost(tmp_path / str(seed), allowed, seed)
        assert moves == [Variant.AUTOREGRESSIVE]
        losses.append(loss)

    mean, worst = statistics.mean(losses), max(losses)
    print(f"\nlost: mean {mean:.1%}, worst {worst:.1%}; by K=0 live alone {live:.1%}")
    assert mean < 0.065
    assert live > 0.11
