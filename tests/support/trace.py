"""A trace with shifts on a virtual engine: what the tuner gets of it, what an oracle would get.

Tokens are counted free of noise: from the request-steps that were played at each K in each phase,
at the draft's own acceptance and step time. Trials and the time until a shift is answered count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local.simulated_engine.assembly import choose_group
from local.virtual_time.clock import run
from local.virtual_time.scene import Scene
from speculative_operator.engine.state_page import parse_state

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")


@dataclass(frozen=True)
class Phase:
    """`batch` clients for `seconds`; `acceptance` is that of `World`."""

    name: str
    batch: int
    acceptance: float
    seconds: float = 300.0


TRACE = (
    Phase("one request, prompts that the draft likes", 1, 1.0),
    Phase("eight requests", 8, 1.0),
    Phase("eight requests, prompts that it does not like", 8, 0.7),
    Phase("eight requests, acceptance collapsed", 8, 0.02),
    Phase("eight requests, prompts that it likes again", 8, 1.0),
    Phase("one request, prompts that it does not like", 1, 0.7),
    Phase("one request, prompts that it likes", 1, 1.0),
)


@dataclass
class Played:
    """Tokens by phase: those of the tuner, and those of every K had it been fixed."""

    tuned: list[float] = field(default_factory=list)
    fixed: list[Mapping[int, float]] = field(default_factory=list)

    @property
    def oracle(self) -> float:
        """Tokens of the best K of each phase, known before."""
        return sum(max(by_length.values()) for by_length in self.fixed)

    @property
    def best_fixed(self) -> float:
        """Tokens of the one K that is best over the whole trace."""
        return max(sum(phase[k] for phase in self.fixed) for k in self.fixed[0])

    @property
    def share(self) -> float:
        """Of the oracle's tokens."""
        return sum(self.tuned) / self.oracle

    def lines(self, trace: Sequence[Phase]) -> list[str]:
        """The comparison as text, a line a phase."""
        lines = []
        for phase, tuned, fixed in zip(trace, self.tuned, self.fixed, strict=True):
            best = max(fixed, key=lambda k: fixed[k])
            lines.append(f"{tuned / fixed[best]:6.1%} of K={best}: {phase.name}")
        lines.append(f"{self.share:6.1%} of the oracle over the whole trace")
        lines.append(f"{self.best_fixed / self.oracle:6.1%} had the best fixed K")
        return lines


def play(folder: Path, *, seed: int = 0, restart_every: float | None = None) -> Played:
    """The trace through the product's tuner, which is killed every `restart_every` seconds and
    started again from what it has saved."""
    return run(_play(Scene(GROUP, folder, seed=seed), restart_every))


async def _play(scene: Scene, restart_every: float | None) -> Played:
    played = Played()
    async with scene.playing():
        for phase in TRACE:
            scene.change(acceptance=phase.acceptance)
            scene.send(phase.batch)
            before = _request_steps(scene)
            await _pass(scene, phase.seconds, restart_every)
            after = _request_steps(scene)
            steps = {k: after[k] - before.get(k, 0.0) for k in after}
            played.tuned.append(phase.seconds * _rate(scene, steps, phase.batch))
            played.fixed.append(
                {k: phase.seconds * scene.goodput(k, phase.batch) for k in scene.policy.arms}
            )
    return played


async def _pass(scene: Scene, seconds: float, restart_every: float | None) -> None:
    for _ in range(round(seconds / restart_every) if restart_every else 0):
        await scene.pass_seconds(restart_every or 0.0)
        await scene.stop_operator()
        scene.start_operator()
    if not restart_every:
        await scene.pass_seconds(seconds)


def _request_steps(scene: Scene) -> Mapping[int, float]:
    """By K, since the engine's start."""
    (engine,) = scene.engines.values()
    found: dict[int, float] = {}
    for key, counts in parse_state(
        engine.page(asyncio.get_running_loop().time())
    ).counters.rows.items():
        found[key.k] = found.get(key.k, 0.0) + counts.requests
    return found


def _rate(scene: Scene, steps: Mapping[int, float], batch: int) -> float:
    """Noise-free tokens a second of so many request-steps at each K."""
    (engine,) = scene.engines.values()
    draft, world = engine.draft, engine.world
    tokens = sum(count * draft.mean_tokens(k, world) for k, count in steps.items())
    seconds = sum(count / batch * draft.mean_seconds(k, batch, world) for k, count in steps.items())
    return tokens / seconds
