"""Reads the measured rows and the step costs, and refuses what cannot be replayed.

Both files are CSV with the columns of the data in `local/simulated_engine/data`. A `FileRefused`
says which file and line, what is wrong, and what is expected.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from local.simulated_engine.growth import Grid
from local.simulated_engine.make_table import METHODS
from local.simulated_engine.table import REFERENCE_BATCH
from speculative_operator.api.speculation import BLOCK_DRAFTERS, Method

ROW_COLUMNS = (
    "source", "target", "method", "K", "hardware", "workload", "concurrency",
    "acceptance_length", "acceptance_rate", "per_position", "throughput_tok_s", "tpot_ms",
    "speedup_vs_ar",
)  # fmt: skip
COST_COLUMNS = (
    "source", "target", "method", "hardware", "batch", "context", "K", "step_ms",
    "cost_ratio_vs_ar",
)  # fmt: skip

LONGEST = 64


class FileRefused(ValueError):
    """The file cannot be replayed; the text says where and why."""


@dataclass(frozen=True)
class Arm:
    """One measured K. `acceptance` is p_1 … p_K, `cost` the step time in autoregressive steps."""

    acceptance: tuple[float, ...]
    cost: float


@dataclass(frozen=True)
class Group:
    """One (source, target, method, hardware, workload, concurrency) of the rows.

    `method` is vLLM's name, `plain_ms` an autoregressive step in milliseconds (10 where the rows
    do not say), `arms` are the measured K above 0, at least two.
    """

    target: str
    method: str
    hardware: str
    workload: str
    concurrency: int | None
    plain_ms: float
    arms: Mapping[int, Arm]

    @property
    def block(self) -> bool:
        """Whether the drafter proposes a block at once."""
        return self.method in BLOCK_DRAFTERS

    def __str__(self) -> str:
        load = f" x{self.concurrency}" if self.concurrency else ""
        return f"{self.target} {self.method} {self.workload}{load} on {self.hardware}"


def read_groups(path: Path) -> tuple[Group, ...]:
    """All groups with two or more K, in the order of the rows."""
    found: dict[tuple[str, ...], dict[int, tuple[_Line, str]]] = {}
    plain: dict[tuple[str, ...], float] = {}
    for line in _lines(path, ROW_COLUMNS):
        where = tuple(line.row[name] for name in ("source", "hardware", "workload", "concurrency"))
        target = line.text("target")
        k = line.whole("K", 0, LONGEST)
        if line.text("method") == "none" or k == 0:
            if line.row["throughput_tok_s"]:
                plain[target, *where] = line.number("throughput_tok_s", above=0.0)
            continue
        arms = found.setdefault((target, line.text("method"), *where), {})
        if k in arms:
            raise line.refused("K", f"a second row of this group with K={k}", "one row for each K")
        arms[k] = (line, method_of(line.text("method")))
    groups = []
    for key, arms in found.items():
        target, name, _, hardware, workload, concurrency = key
        if len(arms) < 2:
            note(f"{path}: {target} {name} {workload} has one K only and is left out")
            continue
        throughput = plain.get((target, *key[2:]))
        groups.append(
            Group(
                target=target,
                method=next(method for _, method in arms.values()),
                hardware=hardware,
                workload=workload,
                concurrency=_concurrency(arms[min(arms)][0]) if concurrency else None,
                plain_ms=1000 * REFERENCE_BATCH / throughput if throughput else 10.0,
                arms={k: _arm(line, k, throughput) for k, (line, _) in sorted(arms.items())},
            )
        )
    if not groups:
        raise FileRefused(f"{path}: no group has two measured K above 0; there is nothing to play")
    return tuple(groups)


def _concurrency(line: _Line) -> int:
    return line.whole("concurrency", 1, 1 << 16)


def _arm(line: _Line, k: int, plain: float | None) -> Arm:
    """E from the row's own positions, c = E / speedup; without a speed-up that of throughput over
    `plain`, tokens a second without speculation."""
    if line.row["per_position"]:
        acceptance = line.positions(k)
    else:
        length = line.number("acceptance_length", above=0.0)
        if not 1.0 <= length <= k + 1:
            raise line.refused("acceptance_length", f"{length}", f"1 to K+1 = {k + 1}")
        acceptance = geometric(length, k)
    if not line.row["speedup_vs_ar"] and plain and line.row["throughput_tok_s"]:
        speedup = line.number("throughput_tok_s", above=0.0) / plain
    else:
        speedup = line.number("speedup_vs_ar", above=0.0)
    return Arm(acceptance, (1.0 + sum(acceptance)) / speedup)


def geometric(length: float, k: int) -> tuple[float, ...]:
    """p_i = a^i for the a that gives E(K) = `length`, found by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if 1.0 + sum(middle**i for i in range(1, k + 1)) < length:
            low = middle
        else:
            high = middle
    return tuple(low**i for i in range(1, k + 1))


def method_of(name: str) -> str:
    """vLLM's name of a method as a study calls it; unknown ones count as a draft model."""
    if name in METHODS:
        return METHODS[name]
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    for method in sorted(Method, key=lambda method: -len(method.value)):
        if method is not Method.NONE and method.value.replace("_", "") in plain:
            return method.value
    note(f"method {name!r} is not known and is replayed as a sequential draft model")
    return Method.DRAFT_MODEL.value


@dataclass(frozen=True)
class Costs:
    """The step-cost grid of one model."""

    target: str
    method: str
    grid: Grid


def read_costs(path: Path) -> tuple[Costs, ...]:
    """All grids of the file, one for each (source, target, method, hardware, context)."""
    found: dict[tuple[str, ...], dict[tuple[int, int], float]] = {}
    for line in _lines(path, COST_COLUMNS):
        key = tuple(
            line.row[name] for name in ("target", "method", "source", "hardware", "context")
        )
        at = line.whole("K", 0, LONGEST), line.whole("batch", 1, 1 << 16)
        grid = found.setdefault(key, {})
        if at in grid:
            raise line.refused("K", f"a second row with K={at[0]} at batch {at[1]}", "one for each")
        grid[at] = line.number("step_ms", above=0.0)
    costs = tuple(Costs(key[0], method_of(key[1]), Grid(grid)) for key, grid in found.items())
    for (target, method, *_), each in zip(found, costs, strict=True):
        lengths, batches = each.grid.lengths, each.grid.batches
        whole = len(each.grid.milliseconds) == len(lengths) * len(batches)
        if not whole or 0 not in lengths or len(lengths) < 2 or len(batches) < 2:
            raise FileRefused(
                f"{path}: {target} {method}: a grid needs K=0 and another K, two or more batch "
                "sizes, and a row for each pair of them"
            )
    if not costs:
        raise FileRefused(f"{path}: no rows")
    return costs


@dataclass(frozen=True)
class _Line:
    path: Path
    number_in_file: int
    row: Mapping[str, str]

    def refused(self, column: str, got: str, wanted: str) -> FileRefused:
        return FileRefused(
            f"{self.path} line {self.number_in_file}, column {column}: {got}; write {wanted}"
        )

    def text(self, column: str) -> str:
        value = self.row[column]
        if not value:
            raise self.refused(column, "empty", "a name")
        return value

    def number(self, column: str, *, above: float) -> float:
        return self._parsed(column, float, f"a number above {above:g}", lambda value: value > above)

    def whole(self, column: str, low: int, high: int) -> int:
        wanted = f"a whole number from {low} to {high}"
        return int(self._parsed(column, int, wanted, lambda value: low <= value <= high))

    def positions(self, k: int) -> tuple[float, ...]:
        """p_1 … p_K: shares that never increase."""
        wanted = f"{k} numbers from 0 to 1 that never increase, joined by ';'"
        try:
            values = tuple(float(part) for part in self.row["per_position"].split(";"))
        except ValueError:
            values = ()
        falling = all(a >= b - 0.02 for a, b in zip((1.0, *values), values, strict=False))
        if len(values) != k or not falling or not all(0.0 <= value <= 1.0 for value in values):
            raise self.refused("per_position", repr(self.row["per_position"]), wanted)
        return values

    def _parsed(
        self,
        column: str,
        kind: Callable[[str], float],
        wanted: str,
        valid: Callable[[float], bool],
    ) -> float:
        try:
            value = kind(self.row[column])
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not valid(value):
            raise self.refused(column, repr(self.row[column]), wanted)
        return value


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileRefused(f"{path}: cannot be read: {error}") from error
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise FileRefused(
            f"{path}: missing columns {', '.join(missing)}; the first line must name "
            f"{','.join(columns)}"
        )
    for row in reader:
        short = [name for name in columns if row[name] is None]
        if short or None in row:
            raise FileRefused(
                f"{path} line {reader.line_num}: not as many fields as the first line names"
            )
        yield _Line(path, reader.line_num, {name: row[name].strip() for name in columns})


def note(text: str) -> None:
    """Something that the reader of the figures should know."""
    print(text, file=sys.stderr)
