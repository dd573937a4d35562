"""One measured group in play: how many drafts a request accepts, how long a step takes."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from dataclasses import dataclass

from local.simulated_engine.growth import cost_growth, idle_tax, plain_growth
from local.simulated_engine.table import Group
from local.simulated_engine.world import World

PREFILL_TOKEN = 1 / 200
"""Time of one prompt token, in autoregressive steps at the reference batch (assumed)."""


@dataclass(frozen=True)
class Noise:
    """How much step times scatter. Assumed, not measured on AMD hardware.

    A step is log-normal with `step`; `outliers` of all steps take `outlier_factor` times as long;
    all steps share a level that wanders by `drift` and forgets itself in `drift_seconds`.
    """

    step: float = 0.05
    outliers: float = 0.001
    outlier_factor: float = 20.0
    drift: float = 0.03
    drift_seconds: float = 60.0


STILL = Noise(step=0.0, outliers=0.0, drift=0.0)
"""No noise: for tests that compare with the table."""


class Draft:
    """Samples one engine's steps. The same seed and calls give the same samples."""

    def __init__(
        self, group: Group, *, speculative: bool = True, noise: Noise = STILL, seed: int = 0
    ) -> None:
        """`speculative` False is an engine without a speculative config: no tax, no drafts."""
        self.group = group
        self.speculative = speculative
        self._noise = noise
        self._random = random.Random(seed)
        self._world: World | None = None
        self._means: dict[tuple[int, int], float] = {}
        self._rising: dict[int, tuple[float, ...]] = {}
        self._level = 0.0
        self._level_at = 0.0

    def mean_seconds(self, length: int, batch: int, world: World) -> float:
        """Noise-free time of a decode step of `batch` requests that verifies `length` drafts."""
        seconds = self.group.autoregressive_seconds * plain_growth(batch) * world.slowdown
        if length:
            cost = self.group.cost(length) * cost_growth(length, batch)
            return seconds * cost * world.speculation_cost
        return seconds * (1 + idle_tax(batch)) if self.speculative else seconds

    def mean_tokens(self, length: int, world: World) -> float:
        """E(K): tokens a step gives to one request, the bonus token included."""
        return 1 + sum(_scaled(self.group.acceptance(length), world))

    def goodput(self, length: int, batch: int, world: World) -> float:
        """Noise-free tokens a second of `batch` requests, decode steps only."""
        tokens = batch * self.mean_tokens(length, world)
        return tokens / self.mean_seconds(length, batch, world)

    def seconds(
        self, length: int, batch: int, prompt_tokens: int, world: World, now: float
    ) -> float:
        """One step's time as it falls out at `now`."""
        self._forget_other_than(world)
        decode = self._means.get((length, batch))
        if decode is None:
            decode = self._means[length, batch] = self.mean_seconds(length, batch, world)
        prefill = prompt_tokens * PREFILL_TOKEN * self.group.autoregressive_seconds
        mean = decode + prefill * world.slowdown
        noise = self._noise
        if noise is STILL:
            return mean
        seconds = mean * math.exp(self._drift(now) + noise.step * self._random.gauss(0.0, 1.0))
        if self._random.random() < noise.outliers:
            seconds *= noise.outlier_factor
        return seconds

    def accepted(self, length: int, requests: int, world: World) -> list[int]:
        """How many of `length` drafts each of `requests` accepts; shape (requests,)."""
        self._forget_other_than(world)
        rising = self._rising.get(length)
        if rising is None:
            rising = self._rising[length] = _scaled(self.group.acceptance(length), world)[::-1]
        draw = self._random.random
        return [length - bisect_right(rising, draw()) for _ in range(requests)]

    def _forget_other_than(self, world: World) -> None:
        """What a step takes and accepts is the same until the conditions change."""
        if world is not self._world:
            self._world = world
            self._means.clear()
            self._rising.clear()

    def _drift(self, now: float) -> float:
        """The wandering level, an Ornstein-Uhlenbeck process looked at once a second."""
        passed = now - self._level_at
        if passed >= 1.0:
            kept = math.exp(-passed / self._noise.drift_seconds)
            spread = self._noise.drift * math.sqrt(1 - kept * kept)
            self._level = kept * self._level + spread * self._random.gauss(0.0, 1.0)
            self._level_at = now
        return self._level


def _scaled(acceptance: tuple[float, ...], world: World) -> tuple[float, ...]:
    if world.acceptance == 1.0:
        return acceptance
    return tuple(p * world.acceptance**i for i, p in enumerate(acceptance, 1))
