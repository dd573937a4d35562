"""The plots of the report, each as the text of an SVG."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from speculative_operator.cli import course, words
from speculative_operator.cli.source import Record
from speculative_operator.tuning.alternatives import alternatives
from speculative_operator.tuning.page import Proposed
from speculative_operator.tuning.verdict import Change

WIDE, HALF = (10.4, 4.4), (5.1, 3.5)
"""Inches; the page is as wide as two halves."""

COLOURS = ("#4269d0", "#e8884a", "#3ca951", "#a463f2", "#ff5a6e", "#6cc5b0", "#9c6b4e", "#97bbf5")
GREY, CHANGE = "#8a8f98", "#d6336c"
MOST_BUCKETS = len(COLOURS)
MOST_LABELS = 30
"""Decisions that are labelled; more would hide each other."""

LABEL_WIDTH = 0.035
"""Of the plot: a label that is closer to the last one stands above it."""

STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#c4c8cf",
    "axes.grid": True,
    "axes.labelpad": 7.0,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 9.0,
    "grid.color": "#eceef1",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "speculation",
}


def goodput_over_time(record: Record, start: float | None = None) -> str:
    """Goodput of every window above, K at its batch size below, and the decisions in both.

    With `start`, a Unix time, in minutes since then: of a model that was played the date tells
    nothing.
    """
    found = course.points(record.past)

    def place(unix: float) -> float:
        return _day(unix) if start is None else (unix - start) / 60

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=WIDE, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        for part in course.stretches(found):
            times = [place(point.at) for point in part]
            above.plot(times, [point.goodput for point in part], color=COLOURS[0], linewidth=1.2)
            below.step(times, [point.length for point in part], color=COLOURS[0], where="post")
        _mark(above, below, [(place(each.at), each) for each in course.changes(record.past)])
        above.set_ylim(bottom=0)
        above.set_ylabel("tokens/s a replica")
        below.set_ylabel("K")
        below.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        if start is None:
            locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
            below.xaxis.set_major_locator(locator)
            formatter = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
            below.xaxis.set_major_formatter(formatter)
        else:
            below.set_xlabel("minutes")
        return as_svg(figure)


def _mark(above: Axes, below: Axes, decided: Sequence[tuple[float, Change]]) -> None:
    """A line for each decision at its place, with K before and after at its top."""
    low, high = above.get_xlim()
    labels = [-math.inf, -math.inf]
    for at, change in decided:
        style = ":" if change.advised else "-"
        for axes in (above, below):
            axes.axvline(at, color=CHANGE, linewidth=0.8, linestyle=style, alpha=0.7)
        if len(decided) <= MOST_LABELS:
            text = f"{change.before}\N{RIGHTWARDS ARROW}{change.after}"
            across = above.get_xaxis_transform()
            row = 0 if at - labels[0] > LABEL_WIDTH * (high - low) else 1
            labels[row] = at
            above.text(
                at, 1.01 + 0.05 * row, text, color=CHANGE, fontsize=7, ha="center", transform=across
            )


def acceptance_by_position(record: Record) -> str:
    """p_i of each K that drafted in the last windows, with two standard errors."""
    with mpl.rc_context(STYLE):
        figure, axes = _half("position", "accepted with all before")
        for k, sums in course.acceptance(record.past).items():
            values = [(at.accepted / at.drafted, 2 * _error(at)) for at in sums if at.drafted]
            if values:
                _curve(axes, range(1, len(values) + 1), values, f"K={k}")
        axes.set_ylim(0, 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(figure, axes)
        return as_svg(figure)


def _error(at: Proposed) -> float:
    """The standard error of a share by Agresti and Coull: not zero where all were accepted."""
    n = at.drafted + 4
    p = (at.accepted + 2) / n
    return math.sqrt(p * (1 - p) / n)


def step_cost(record: Record) -> str:
    """Measured step time at each K over that at K=0, a curve for each batch bucket."""
    state = record.state
    curves = {}
    for name in busiest(record):
        cost = state.buckets[name].cost
        timed = (k for k in record.policy.choices if state.timed_anywhere(k))
        known = {k: cost.of(k) for k in timed if cost.measured(k, 0)}
        means = {k: math.exp(estimate.mean) for k, estimate in known.items()}
        curves[name] = {0: (1.0, 0.0)} | {
            k: (mean, mean * math.sqrt(known[k].variance)) for k, mean in means.items()
        }
    return _curves(record, "step time over that of K=0", curves)


def expected_goodput(record: Record) -> str:
    """Goodput at each measured K over that of the K in force, a curve for each batch bucket."""
    curves = {}
    for name in busiest(record):
        bucket = record.state.buckets[name]
        curves[name] = {bucket.length: (1.0, 0.0)} | {
            other.length: (1.0 + other.gain, other.error)
            for other in alternatives(record.state, record.policy, name)
            if record.state.timed_anywhere(other.length)
            and bucket.cost.measured(other.length, bucket.length)
            and other.gain is not None
            and other.error is not None
        }
    return _curves(record, "goodput over that of K in force", curves)


Curves = Mapping[int, Mapping[int, tuple[float, float]]]
"""By bucket and K, a value and its standard error."""


def _curves(record: Record, up: str, curves: Curves) -> str:
    with mpl.rc_context(STYLE):
        figure, axes = _half("K", up)
        for name, curve in curves.items():
            lengths = sorted(curve)
            if len(lengths) > 1:
                label = f"batch {words.batches(name, record.policy.max_num_seqs)}"
                _curve(axes, lengths, [curve[k] for k in lengths], label)
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        axes.set_xticks((0, *record.policy.choices))
        _legend(figure, axes)
        return as_svg(figure)


def _curve(
    axes: Axes, across: Sequence[int], values: Sequence[tuple[float, float]], label: str
) -> None:
    axes.errorbar(
        across,
        [value for value, _ in values],
        yerr=[error for _, error in values],
        marker="o",
        markersize=3,
        linewidth=1.2,
        label=label,
    )


def busiest(record: Record) -> list[int]:
    """The batch buckets with most traffic, as many as there are colours, smallest first."""
    buckets = record.state.buckets
    return sorted(sorted(buckets, key=lambda name: -buckets[name].traffic)[:MOST_BUCKETS])


def _half(across: str, up: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=HALF, layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return figure, axes


def _legend(figure: Figure, axes: Axes) -> None:
    """Below the axes, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        figure.legend(fontsize=8, ncols=4, loc="outside lower center")


def _day(unix: float) -> float:
    """A time as the axis of dates counts."""
    return float(date2num(datetime.fromtimestamp(unix, UTC)))  # type: ignore[no-untyped-call]


def as_svg(figure: Figure) -> str:
    """The `svg` element, without the prologue of a file of its own."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
