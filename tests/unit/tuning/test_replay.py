"""Recorded windows played through the policy again."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.virtual_time.scene import Scene, play, policy_for
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.history import Entry, entries
from speculative_operator.tuning.memory import MOST_HISTORY_BYTES, from_data
from speculative_operator.tuning.replay import replayed
from speculative_operator.tuning.schedule import length_at

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")


def recorded(folder: Path, seed: int, *, restarts: bool = True) -> list[Entry]:
    """The saved history of a scene with other loads, settings and operators every few windows."""
    chance = random.Random(seed)
    policy = policy_for(GROUP)
    scene = Scene(GROUP, folder, replicas=1 + seed % 2, seed=seed)
    edits = (
        lambda: scene.set_policy(replace(policy, high=chance.choice((3, 5, 64)))),
        lambda: scene.set_policy(replace(policy, minimum_gain=chance.choice((0.0, 0.05, 0.6)))),
        lambda: scene.set_policy(replace(policy, mode=chance.choice(tuple(TuningMode)))),
        lambda: scene.change(acceptance=chance.choice((0.05, 0.6, 1.0))),
        lambda: scene.send(chance.choice((1, 4, 16, 48))),
        lambda: scene.send(0),
    )

    async def script(scene: Scene) -> None:
        scene.send(16)
        await scene.pass_seconds(60)
        for _ in range(12):
            chance.choice(edits)()
            await scene.pass_seconds(chance.uniform(5, 90))
            if restarts and chance.random() < 0.3:
                await scene.stop_operator()
                await scene.pass_seconds(chance.uniform(0, 20))
                scene.start_operator()
        await scene.pass_seconds(120)

    play(scene, script)
    (saved,) = scene.memories.kept.values()
    assert sum(map(len, saved.binary_data.values())) <= MOST_HISTORY_BYTES
    return list(entries(from_data(saved.data, saved.binary_data).history))


@pytest.mark.parametrize("seed", range(4))
def test_unchanged_settings_give_the_recorded_decisions(tmp_path: Path, seed: int) -> None:
    """Else an answer to "what if" would be about something that never ran."""
    past = recorded(tmp_path, seed)

    steps = list(replayed(past))

    assert len(steps) == len(past) > 20
    assert [step.entry.at for step in steps if not step.same] == []
    assert [step.decision.changes for step in steps] == [entry.changes for entry in past]


def test_a_higher_minimum_gain_would_have_fallen_back(tmp_path: Path) -> None:
    """The question that a user asks; speculation pays 1.6 times here."""
    past = [e for e in recorded(tmp_path, 1, restarts=False) if e.policy.mode is TuningMode.AUTO]

    (*_, last) = replayed(past[:10], lambda policy: replace(policy, minimum_gain=3.0))

    assert length_at(last.entry.table, 16) > 0
    assert length_at(last.decision.table, 16) == 0


def test_replay_begins_at_the_first_entry_that_holds_its_state(tmp_path: Path) -> None:
    """The oldest entries are dropped; without what was known, nothing can be decided again."""
    past = recorded(tmp_path, 3, restarts=False)

    assert list(replayed(past[1:])) == []
