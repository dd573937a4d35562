"""Episodes: what one engine meets, window by window. The sets are those of `SETS`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.replay.files import Arm, Costs, Group
from local.simulated_engine.table import REFERENCE_BATCH

WINDOWS, CHANGING = 60, 120
"""Windows of an episode, and of one whose conditions change."""

LEAST_TAX, MOST_TAX = 0.066, 0.216
"""K=0 in a speculative engine over autoregressive decoding, in step time: measured extremes."""

LEAST_NOISE, MOST_NOISE = 0.02, 0.05
"""Standard deviation of a window's log step time."""

BATCH = 4
"""Running requests where the rows do not name any."""

E_BATCHES = 4
"""Batch sizes of set E: the grid's first ones."""


@dataclass(frozen=True)
class Condition:
    """What every K brings under the same traffic: p_1 … p_K and milliseconds a step.

    `plain_ms` is a step without any speculation in the engine; `step_ms` has K=0 live too.
    """

    batch: int
    acceptance: Mapping[int, Sequence[float]]
    step_ms: Mapping[int, float]
    plain_ms: float

    @cached_property
    def lengths(self) -> dict[int, float]:
        """E(K)."""
        return {k: 1.0 + sum(chances) for k, chances in self.acceptance.items()}

    @cached_property
    def goodput(self) -> dict[int, float]:
        """Tokens a millisecond and request, without noise."""
        return {k: length / self.step_ms[k] for k, length in self.lengths.items()}

    @cached_property
    def best(self) -> float:
        """The highest goodput of any K."""
        return max(self.goodput.values())


@dataclass(frozen=True)
class Episode:
    """One engine's way through its conditions, one a window.

    changes  windows at which the conditions become others, for the recovery
    gaps     windows of which nothing is heard
    broken   windows whose counters contradict each other
    noise    standard deviation of a window's log step time
    """

    group: str
    target: str
    method: str
    arms: tuple[int, ...]
    conditions: Sequence[Condition]
    noise: float
    seed: int
    changes: tuple[int, ...] = ()
    gaps: frozenset[int] = frozenset()
    broken: frozenset[int] = frozenset()


Episodes = Iterator[Episode]


@dataclass(frozen=True)
class Data:
    """What is replayed: the rows' groups, the grids, and how many seeds a group."""

    groups: Sequence[Group]
    costs: Sequence[Costs]
    seeds: int


@dataclass(frozen=True)
class _Draw:
    """The chance of one episode; `tax` and `noise` are drawn first."""

    chance: random.Random
    tax: float
    noise: float
    seed: int

    @classmethod
    def of(cls, name: str, group: object, seed: int) -> _Draw:
        chance = random.Random(f"{name}/{group}/{seed}")
        return cls(
            chance=chance,
            tax=chance.uniform(LEAST_TAX, MOST_TAX),
            noise=chance.uniform(LEAST_NOISE, MOST_NOISE),
            seed=chance.getrandbits(48),
        )


def _condition(
    group: Group,
    tax: float,
    *,
    scale: float = 1.0,
    plain: float = 1.0,
    acceptance: Callable[[int, float], float] = lambda _, p: p,
) -> Condition:
    """The group's own figures, with c(K) times `scale` and all steps times `plain`."""
    plain_ms = group.plain_ms * plain
    return Condition(
        batch=group.concurrency or BATCH,
        acceptance={0: ()}
        | {
            k: tuple(acceptance(at, p) for at, p in enumerate(arm.acceptance, 1))
            for k, arm in group.arms.items()
        },
        step_ms={0: plain_ms * (1 + tax)}
        | {k: plain_ms * arm.cost * scale for k, arm in group.arms.items()},
        plain_ms=plain_ms,
    )


def _episode(group: Group, draw: _Draw, conditions: Sequence[Condition], **rest: object) -> Episode:
    return Episode(
        group=str(group),
        target=group.target,
        method=group.method,
        arms=(0, *group.arms),
        conditions=conditions,
        noise=draw.noise,
        seed=draw.seed,
        **rest,  # type: ignore[arg-type]
    )


def _draws(name: str, data: Data) -> Iterator[tuple[Group, int, _Draw]]:
    for group in data.groups:
        for seed in range(data.seeds):
            yield group, seed, _Draw.of(name, group, seed)


def natural(data: Data) -> Episodes:
    """A: the rows as they were measured."""
    for group, _, draw in _draws("A", data):
        yield _episode(group, draw, [_condition(group, draw.tax)] * WINDOWS)


PROFILES = (0.5, 0.65, 0.8)
"""Set B: chances that a token is accepted after those before it; the grid has no acceptance."""


def grid(data: Data) -> Episodes:
    """B: the measured step costs at each batch size, each with three acceptances."""
    for costs, profile in itertools.product(data.costs, PROFILES):
        for batch in costs.grid.batches:
            group = _grid_group(costs, batch, profile)
            for seed in range(data.seeds):
                draw = _Draw.of("B", group, seed)
                yield _episode(group, draw, [_condition(group, draw.tax)] * WINDOWS)


def _grid_group(costs: Costs, batch: int, profile: float) -> Group:
    step = costs.grid.milliseconds
    return Group(
        target=costs.target,
        method=costs.method,
        hardware="grid",
        workload=f"acceptance {profile}",
        concurrency=batch,
        plain_ms=step[0, batch],
        arms={
            k: Arm(tuple(profile**i for i in range(1, k + 1)), step[k, batch] / step[0, batch])
            for k in costs.grid.lengths
            if k
        },
    )


BEST_SPEEDUPS = (0.85, 0.97, 1.08)


def scaled(data: Data) -> Episodes:
    """C: costs scaled so that the best speed-up over autoregressive is about 1."""
    for group, seed, draw in _draws("C", data):
        scale = _best_speedup(group) / BEST_SPEEDUPS[seed % len(BEST_SPEEDUPS)]
        yield _episode(group, draw, [_condition(group, draw.tax, scale=scale)] * WINDOWS)


def _best_speedup(group: Group) -> float:
    return max((1 + sum(arm.acceptance)) / arm.cost for arm in group.arms.values())


def workloads(data: Data) -> Episodes:
    """D: one workload, then another one of the same target, method and hardware."""
    half = CHANGING // 2
    for group, _, draw in _draws("D", data):
        alike = [other for other in data.groups if _same_engine(other, group)]
        if len(alike) < 2:
            continue
        after = alike[(alike.index(group) + 1) % len(alike)]
        conditions = [_condition(group, draw.tax)] * half + [_condition(after, draw.tax)] * half
        yield _episode(group, draw, conditions, changes=(half,))


def _same_engine(one: Group, other: Group) -> bool:
    def engine(group: Group) -> tuple[object, ...]:
        return group.target, group.method, group.hardware, tuple(group.arms), group.concurrency

    return engine(one) == engine(other)


LOADED_SPEEDUP = 0.85
"""Set D2: the best goodput of any K > 0 under load, over that of K=0 live."""


def _grid_of(data: Data, group: Group, seed: int) -> Costs:
    """The grids take turns, so that each of them is met by groups and seeds alike."""
    return data.costs[(data.groups.index(group) + seed) % len(data.costs)]


def load(data: Data) -> Episodes:
    """D2: load rises until K=0 is best, and falls again; the batch cell does not tell."""
    third = CHANGING // 3
    for group, seed, draw in _draws("D2", data):
        grown = _grid_of(data, group, seed).grid
        slower = grown.plain(grown.batches[-1], REFERENCE_BATCH)
        scale = _best_speedup(group) * (1 + draw.tax) / LOADED_SPEEDUP
        calm = _condition(group, draw.tax)
        loaded = _condition(group, draw.tax, scale=scale, plain=slower)
        conditions = [calm] * third + [loaded] * third + [calm] * third
        yield _episode(group, draw, conditions, changes=(third, 2 * third))


COLLAPSE = 0.3


def collapse(data: Data) -> Episodes:
    """D3: p_i falls to p_i · 0.3^i, and comes back."""
    third = CHANGING // 3
    for group, _, draw in _draws("D3", data):
        sound = _condition(group, draw.tax)
        fallen = _condition(group, draw.tax, acceptance=lambda at, p: p * COLLAPSE**at)
        conditions = [sound] * third + [fallen] * third + [sound] * third
        yield _episode(group, draw, conditions, changes=(third, 2 * third))


def buckets(data: Data) -> Episodes:
    """E: each window at another batch size, drawn anew."""
    for group, seed, draw in _draws("E", data):
        costs = _grid_of(data, group, seed)
        batches = costs.grid.batches[:E_BATCHES]
        at = {batch: _grown(group, draw.tax, costs, batch) for batch in batches}
        drawn = [at[draw.chance.choice(batches)] for _ in range(WINDOWS)]
        yield _episode(group, draw, drawn)


def _grown(group: Group, tax: float, costs: Costs, batch: int) -> Condition:
    """The group's figures, taken to be measured at the reference batch, at another one."""
    condition = _condition(group, tax, plain=costs.grid.plain(batch, REFERENCE_BATCH))
    step_ms = {
        k: ms * (costs.grid.cost(k, batch, REFERENCE_BATCH) if k else 1.0)
        for k, ms in condition.step_ms.items()
    }
    return Condition(batch, condition.acceptance, step_ms, condition.plain_ms)


DEAD_FROM, DEAD_FOR, GAP = 40, 30, 9
BROKEN_SHARE = 0.03


def faults(data: Data) -> Episodes:
    """F: nothing is accepted for 30 of 120 windows, 3% are broken, 9 in a row are missing: those
    before the fault, since what nobody can see nobody can react to."""
    for group, _, draw in _draws("F", data):
        sound = _condition(group, draw.tax)
        dead = _condition(group, draw.tax, acceptance=lambda _at, _p: 0.0)
        rest = CHANGING - DEAD_FROM - DEAD_FOR
        gap = draw.chance.randrange(10, DEAD_FROM - GAP)
        yield _episode(
            group,
            draw,
            [sound] * DEAD_FROM + [dead] * DEAD_FOR + [sound] * rest,
            changes=(DEAD_FROM, DEAD_FROM + DEAD_FOR),
            gaps=frozenset(range(gap, gap + GAP)),
            broken=frozenset(n for n in range(CHANGING) if draw.chance.random() < BROKEN_SHARE),
        )


SETS: Mapping[str, Callable[[Data], Episodes]] = {
    "A": natural,
    "B": grid,
    "C": scaled,
    "D": workloads,
    "D2": load,
    "D3": collapse,
    "E": buckets,
    "F": faults,
}
