"""The plots of docs/choosing-a-method.md, from the rows that AMD's study measured.

Run `python -m tools.study` when the rows or the plots have changed; a test holds the files to it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, mean

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from speculative_operator.cli.figures import COLOURS, GREY, STYLE, as_svg

CHECKOUT = Path(__file__).resolve().parent.parent
DATA = CHECKOUT / "local" / "simulated_engine" / "data"
PICTURES = CHECKOUT / "docs" / "pictures"
PLAIN = "none"


@dataclass(frozen=True)
class Row:
    """One measured run: a target and a method at one K on one benchmark."""

    target: str
    method: str
    hardware: str
    workload: str
    length: int
    acceptance: float
    """Accepted draft tokens in percent."""
    speedup: float
    """Throughput over that of the same engine without speculation."""

    @property
    def group(self) -> tuple[str, str]:
        return self.target, self.method


def rows() -> tuple[Row, ...]:
    """Every row that speculates."""
    with (DATA / "amd_speculation.csv").open() as file:
        return tuple(
            Row(
                line["target"].partition("/")[2],
                line["method"],
                line["hardware"],
                line["workload"],
                int(line["K"]),
                float(line["acceptance_rate"]),
                float(line["speedup_vs_ar"]),
            )
            for line in csv.DictReader(file)
            if line["method"] != PLAIN
        )


def best(found: Sequence[Row]) -> Mapping[tuple[str, str], tuple[Row, ...]]:
    """By target and method, the fastest row of each benchmark."""
    chosen: dict[tuple[str, str], dict[str, Row]] = {}
    for row in found:
        by_workload = chosen.setdefault(row.group, {})
        known = by_workload.get(row.workload)
        if known is None or row.speedup > known.speedup:
            by_workload[row.workload] = row
    return {group: tuple(by_workload.values()) for group, by_workload in chosen.items()}


def acceptance_tells(found: Sequence[Row]) -> float:
    """The correlation of acceptance rate and speed-up."""
    return correlation([row.acceptance for row in found], [row.speedup for row in found])


def _colours(found: Sequence[Row]) -> Mapping[str, str]:
    return dict(zip(sorted({row.method for row in found}), COLOURS, strict=False))


def best_speedups(found: Sequence[Row]) -> str:
    """The best K's speed-up of every target and method: a dot a benchmark, a bar for their mean."""
    colours, chosen = _colours(found), best(found)
    groups = sorted(chosen, key=lambda group: (group[0], mean(r.speedup for r in chosen[group])))
    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    axes = figure.subplots()
    for at, group in enumerate(groups):
        colour = colours[group[1]]
        values = [row.speedup for row in chosen[group]]
        axes.barh(at, mean(values) - 1, left=1, height=0.62, color=colour, alpha=0.35)
        axes.plot(values, [at] * len(values), "o", color=colour, markersize=4)
    axes.set_yticks(range(len(groups)), [f"{target}   {method}" for target, method in groups])
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set_xlabel("throughput over that without speculation, at the best K")
    axes.grid(visible=False, axis="y")
    return as_svg(figure)


def acceptance_and_speedup(found: Sequence[Row]) -> str:
    """A dot a row: how much is accepted, and how much faster it is."""
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for method, colour in _colours(found).items():
        of_method = [row for row in found if row.method == method]
        axes.plot(
            [row.acceptance for row in of_method],
            [row.speedup for row in of_method],
            "o", color=colour, markersize=3, alpha=0.8, label=method,
        )  # fmt: skip
    axes.axhline(1.0, color=GREY, linewidth=0.8)
    axes.set_xlabel("accepted draft tokens, %")
    axes.set_ylabel("speed-up")
    figure.legend(loc="outside right center", fontsize=8)
    return as_svg(figure)


def speedup_by_length(found: Sequence[Row]) -> str:
    """A panel a target: the mean speed-up of the benchmarks by K."""
    colours = _colours(found)
    targets = sorted({row.target for row in found})
    figure = Figure(figsize=(8.0, 4.4), layout="constrained")
    panels = figure.subplots(2, 3, sharey=True)
    for axes, target in zip(panels.flat, targets, strict=True):
        for method, colour in colours.items():
            of_method = [row for row in found if row.group == (target, method)]
            lengths = sorted({row.length for row in of_method})
            means = [mean(r.speedup for r in of_method if r.length == k) for k in lengths]
            axes.plot(lengths, means, "o-", color=colour, markersize=3, linewidth=1.2)
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        axes.set_title(target, fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    keys = [Line2D([], [], color=colour, marker="o", markersize=3) for colour in colours.values()]
    figure.legend(keys, list(colours), loc="outside lower center", ncols=len(keys), fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("K")
    figure.supylabel("speed-up", fontsize=9)
    return as_svg(figure)


def cost_by_batch() -> str:
    """Step time over that of K=0 by batch: what E has to be for speculation to break even."""
    with (DATA / "step_cost_by_batch.csv").open() as file:
        found = [
            (int(line["batch"]), int(line["K"]), float(line["cost_ratio_vs_ar"]))
            for line in csv.DictReader(file)
        ]
    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    axes = figure.subplots()
    for colour, length in zip(COLOURS, sorted({k for _, k, _ in found if k}), strict=False):
        points = [(batch, cost) for batch, k, cost in found if k == length]
        axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=4, label=f"K={length}")
    axes.set_xscale("log", base=4)
    axes.set_xticks(batches := sorted({batch for batch, _, _ in found}), map(str, batches))
    axes.set_xlabel("requests in a step")
    axes.set_ylabel("step time over that of K=0")
    axes.legend(fontsize=8)
    return as_svg(figure)


def files() -> Mapping[Path, str]:
    """Every picture and its text."""
    found = rows()
    with mpl.rc_context(STYLE):
        return {
            PICTURES / "study-best.svg": best_speedups(found),
            PICTURES / "study-acceptance.svg": acceptance_and_speedup(found),
            PICTURES / "study-lengths.svg": speedup_by_length(found),
            PICTURES / "study-cost.svg": cost_by_batch(),
        }


def main() -> None:
    """Draws them all."""
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
