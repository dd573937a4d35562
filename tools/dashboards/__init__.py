"""The dashboards of the chart, built with Grafana's own SDK: fleet, one model, the operator."""

from __future__ import annotations

from collections.abc import Mapping

from tools.dashboards.fleet import fleet
from tools.dashboards.model import model
from tools.dashboards.operator import operator


def dashboards() -> Mapping[str, str]:
    """Grafana's JSON by file name."""
    return {"fleet.json": fleet(), "model.json": model(), "operator.json": operator()}
