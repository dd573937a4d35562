"""A small chart in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import plotille

from speculative_operator.cli.course import Point, stretches

HEIGHT = 8
LABELS = 22
"""Columns left of the curve and right of it."""


def goodput_chart(found: Sequence[Point], *, width: int) -> str:
    """Goodput over the minutes until the last window, without colours; needs two windows."""
    last = found[-1].at
    figure = plotille.Figure()
    figure.with_colors = False
    figure.origin = False
    figure.width, figure.height = width - LABELS, HEIGHT
    figure.x_label, figure.y_label = "min", "tokens/s"
    figure.set_x_limits(min_=(found[0].at - last) / 60, max_=0.0)
    figure.set_y_limits(min_=0.0, max_=1.1 * max(point.goodput for point in found))
    figure.x_ticks_fkt = _tick
    figure.y_ticks_fkt = _tick
    for part in stretches(found):
        minutes = [(point.at - last) / 60 for point in part]
        figure.plot(minutes, [point.goodput for point in part])
    return str(figure.show())


def _tick(low: float, high: float) -> str:
    del high
    return f"{low:,.0f}" if abs(low) >= 10 or low == 0 else f"{low:.1f}"
