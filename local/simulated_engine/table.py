"""Measured groups of (target, method, hardware, workload): acceptance and step cost by K.

The table is `data/engines.csv`; its header says where every figure comes from.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

TABLE = Path(__file__).parent / "data" / "engines.csv"
REFERENCE_BATCH = 16
"""Running requests at which the rows are taken to have been measured."""

COLUMNS = (
    "target",
    "method",
    "hardware",
    "workload",
    "K",
    "acceptance",
    "autoregressive_step_ms",
    "cost",
)


@dataclass(frozen=True)
class Arm:
    """One measured K. `acceptance` is unconditional, by position, so it never increases."""

    length: int
    acceptance: tuple[float, ...]
    cost: float
    """Time of a step at the reference batch, in autoregressive steps."""


@dataclass(frozen=True)
class Group:
    """One target with one drafter on one workload."""

    target: str
    method: str
    hardware: str
    workload: str
    autoregressive_seconds: float
    """Step time without speculation at the reference batch."""
    arms: tuple[Arm, ...]
    """By increasing K, at least two."""

    def __str__(self) -> str:
        return f"{self.target} {self.method} {self.workload} on {self.hardware}"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The K that were measured."""
        return tuple(arm.length for arm in self.arms)

    def acceptance(self, length: int) -> tuple[float, ...]:
        """Unconditional acceptance of positions 1…`length`; shape (length,).

        From the next larger measured K, cut short. Above all of them the last position's
        conditional acceptance is kept.
        """
        source = next((arm for arm in self.arms if arm.length >= length), self.arms[-1])
        known = source.acceptance[:length]
        if len(known) == length:
            return known
        ratio = known[-1] / known[-2] if len(known) > 1 else known[-1]
        return known + tuple(
            known[-1] * ratio**beyond for beyond in range(1, length - len(known) + 1)
        )

    def cost(self, length: int) -> float:
        """Time of a step with `length` ≥ 1 drafts at the reference batch, in plain steps."""
        for low, high in pairwise(self.arms):
            if low.length <= length <= high.length:
                share = (length - low.length) / (high.length - low.length)
                return low.cost + share * (high.cost - low.cost)
        intercept, slope = _line([(arm.length, arm.cost) for arm in self.arms])
        return max(intercept + slope * length, 0.5)


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Least-squares (intercept, slope)."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return middle_y - slope * middle_x, slope


@cache
def read_table(path: Path = TABLE) -> tuple[Group, ...]:
    """All groups of the table, in its order."""
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    groups = []
    for _, members in groupby(rows, key=lambda row: [row[name] for name in COLUMNS[:4]]):
        measured = list(members)
        first = measured[0]
        groups.append(
            Group(
                target=first["target"],
                method=first["method"],
                hardware=first["hardware"],
                workload=first["workload"],
                autoregressive_seconds=float(first["autoregressive_step_ms"]) / 1000,
                arms=tuple(
                    Arm(
                        int(row["K"]),
                        tuple(float(p) for p in row["acceptance"].split(";")),
                        float(row["cost"]),
                    )
                    for row in measured
                ),
            )
        )
    return tuple(groups)
