"""Engines whose plugin does not know their vLLM, under the whole tuner: by vLLM's own metrics and
restarts alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.virtual_time.clock import run
from local.virtual_time.engine import Traffic
from local.virtual_time.rollout import rolling
from local.virtual_time.scene import Scene, policy_for
from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.variant import Variant

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")
CLIENTS = 16
DEAR = 4.0
"""Factor on the cost of steps with drafts."""

STARTUP = 20.0


def a_scene(folder: Path) -> Scene:
    """Two replicas that may be restarted."""
    limits = RestartLimits(wanted=True, surge=True, replicas=2)
    policy = replace(policy_for(GROUP), restart=limits)
    return Scene(GROUP, folder, policy=policy, replicas=2)


def true_gain(scene: Scene, tokens: float) -> float:
    """By how much engines without speculation are faster than one that made so many `tokens` a
    second."""
    plain = scene.engine(99, speculative=False)
    plain.send(0.0, Traffic(CLIENTS))
    return plain.generated(300.0) / 300.0 / tokens - 1.0


def test_a_draft_that_costs_too_much_is_left_for_good(tmp_path: Path) -> None:
    """And engines without speculation are measured by the same metrics."""
    scene = a_scene(tmp_path)

    async def script() -> list[Variant]:
        async with scene.playing(), rolling(scene, STARTUP) as rollout:
            scene.change(page="unmeasured", speculation_cost=DEAR, acceptance=0.5)
            scene.send(CLIENTS)
            await scene.pass_seconds(900)
            return rollout.moves

    moves = run(script())

    assert moves == [Variant.AUTOREGRESSIVE]
    assert scene.view.tuned.reason is Reason.AUTOREGRESSIVE
    assert scene.view.evidence is not None
    assert scene.view.evidence.goodput is not None


def test_a_look_at_engines_without_speculation_measures_what_speculation_brings(
    tmp_path: Path,
) -> None:
    """The user asks for it; it comes back, and the expectation is then the truth."""
    scene = a_scene(tmp_path)

    async def script() -> tuple[list[Variant], float]:
        async with scene.playing(), rolling(scene, STARTUP) as rollout:
            scene.change(page="unmeasured")
            scene.send(CLIENTS)
            await scene.pass_seconds(100)
            tokens = rollout.tokens() / 100 / 2
            (model,) = scene.fleet.models
            scene.fleet.models = (replace(model, look="now"),)
            await scene.pass_seconds(900)
            return rollout.moves, tokens

    moves, tokens = run(script())

    assert moves == [Variant.AUTOREGRESSIVE, Variant.SPECULATIVE]
    assert scene.view.tuned.reason is Reason.NOT_TUNABLE
    assert scene.view.outlook is not None
    assert scene.view.outlook.gain == pytest.approx(true_gain(scene, tokens), abs=0.06)
