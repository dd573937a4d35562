"""The dashboards of the chart as Grafana reads them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from speculative_operator.controller.described import OF_MODELS, OF_OPERATOR, Kind
from tools.dashboards import dashboards

PAGES: dict[str, Any] = {name: json.loads(text) for name, text in dashboards().items()}
KNOWN = {of.series for of in (*OF_OPERATOR, *OF_MODELS) if of.kind is not Kind.HISTOGRAM} | {
    f"{of.name}_{part}"
    for of in OF_OPERATOR
    if of.kind is Kind.HISTOGRAM
    for part in ("bucket", "count", "sum")
}


def queries(page: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in page["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("name", PAGES)
def test_every_panel_says_what_it_shows(name: str) -> None:
    """Who looks at it at night has not read the code."""
    for panel in PAGES[name]["panels"]:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["targets"]
        assert panel["datasource"]["uid"] == "${datasource}"


@pytest.mark.parametrize("name", PAGES)
def test_every_query_asks_for_series_that_are_exported(name: str) -> None:
    """A panel of a metric that was renamed stays empty and says nothing."""
    asked = {
        series for query in queries(PAGES[name]) for series in re.findall(r"speculative_\w+", query)
    }

    assert asked <= KNOWN


def test_every_metric_of_ours_is_on_a_dashboard() -> None:
    """One that nobody looks at is not worth its series."""
    asked = " ".join(query for page in PAGES.values() for query in queries(page))
    unseen = [of.name for of in (*OF_OPERATOR, *OF_MODELS) if of.name not in asked]

    assert not unseen


@pytest.mark.parametrize("name", PAGES)
def test_panels_do_not_lie_over_each_other(name: str) -> None:
    """Grafana would move them, each time another way."""
    taken: set[tuple[int, int]] = set()
    for panel in PAGES[name]["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
