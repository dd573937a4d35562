"""The dashboards of the chart as Grafana reads them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from speculative_operator.controller.metrics.described import OF_MODELS, OF_OPERATOR, Kind
from speculative_operator.engine.series import OF_PLUGIN, OF_VLLM
from tools.dashboards import dashboards

PAGES: dict[str, Any] = {name: json.loads(text) for name, text in dashboards().items()}
PARTS = {Kind.HISTOGRAM: ("_bucket", "_count", "_sum")}
OURS = {
    f"{of.series}{part}": of.name
    for of in (*OF_OPERATOR, *OF_MODELS)
    for part in PARTS.get(of.kind, ("",))
}
"""The metric by each of its series."""

SERIES = re.compile(r"\b(?:speculati|vllm:)[\w:]*")


def asked_of(page: dict[str, Any]) -> set[str]:
    """The series in its queries."""
    queries = (target["expr"] for panel in page["panels"] for target in panel["targets"])
    return {series for query in queries for series in SERIES.findall(query)}


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
    assert asked_of(PAGES[name]) <= {*OURS, *OF_PLUGIN, *OF_VLLM}


def test_every_metric_of_ours_is_on_a_dashboard() -> None:
    """One that nobody looks at is not worth its series."""
    asked = {OURS.get(series) for page in PAGES.values() for series in asked_of(page)}

    assert set(OURS.values()) <= asked


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
