"""The report in a real browser, as a user opens it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from speculative_operator.cli.report import write_report
from speculative_operator.cli.source import Found, record_of
from tests.support.browser import PROGRAM, Opened, opened
from tests.support.recorded import END, RecordedModel

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(PROGRAM is None, reason="there is no chromium on this machine"),
]

DESK, PHONE = 1280, 420
"""Pixels."""


@pytest.mark.parametrize("width", [DESK, PHONE])
async def test_the_report_opens_offline_without_a_complaint_and_fits(
    recorded: RecordedModel, tmp_path: Path, width: int
) -> None:
    """Nothing is asked of a network, nothing lies over anything else or beside the view."""
    path = tmp_path / "report.html"
    write_report(Found("prod/qwen", None, record_of(recorded.memory)), path, now=END)

    page = await opened(path, width=width)

    keep(page, tmp_path)
    assert page.requests == []
    assert page.errors == []
    assert page.width <= page.view
    plots = [box for box in page.boxes if box[0] == "svg"]
    assert len(plots) == 4
    assert all(right - left > 300 and bottom - top > 150 for _, left, top, right, bottom in plots)
    assert overlapping(page) == []


def keep(page: Opened, folder: Path) -> None:
    """For people who look at it, in pytest's folder."""
    (folder / "report.png").write_bytes(page.picture)


def overlapping(page: Opened) -> list[tuple[str, str]]:
    """Pairs of things that are shown one over the other."""
    return [
        (one[0], other[0])
        for one, other in combinations(page.boxes, 2)
        if min(one[3], other[3]) - max(one[1], other[1]) > 1
        and min(one[4], other[4]) - max(one[2], other[2]) > 1
    ]
