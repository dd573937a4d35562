"""What the dashboards have in common: how a query, a panel and a page are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Chart
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueTextMode,
    LegendDisplayMode,
    LegendPlacement,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef("prometheus", "${datasource}")
TAG = "speculative-operator"

WIDTH = 24
"""Columns of a page."""

TOKENS_PER_SECOND, SHARE, SECONDS, BYTES = "suffix: tokens/s", "percentunit", "s", "bytes"
PER_SECOND, PLAIN, TIMES = "ops", "short", "suffix:x"

ONE_SERIES = "without (pod, instance)"
"""Of a model's numbers: another pod goes on with them when it leads."""

Some = TypeVar("Some")
Colours = tuple[Threshold, ...]
NEUTRAL: Colours = (Threshold(None, "text"),)
BAD_FROM_1: Colours = (Threshold(None, "green"), Threshold(1, "red"))
GOOD_FROM_1: Colours = (Threshold(None, "red"), Threshold(1, "green"))
ONLY_1: Colours = (*GOOD_FROM_1, Threshold(2, "red"))
"""Of a number, from minus infinity up. Grafana's own would call 80 models an alarm."""


@dataclass(frozen=True)
class Line:
    """One query, and how its series are called: `{{label}}` is a label's value."""

    query: str
    legend: str = ""


@dataclass(frozen=True)
class Column:
    """One query of a table, and what stands above its values; without a title only its labels are
    shown."""

    query: str
    title: str = ""
    unit: str = PLAIN


def chart(title: str, meaning: str, *lines: Line, unit: str = PLAIN, width: int = 12) -> Chart:
    """Lines over time."""
    panel = (
        Chart()
        .title(title)
        .description(meaning)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(8)
        .fill_opacity(5)
        .legend(
            VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs([])
        )
    )
    for name, line in _named(lines):
        panel.with_target(_query(name, line).range())
    return panel


def number(
    title: str,
    meaning: str,
    line: Line,
    *,
    unit: str = PLAIN,
    colours: Colours = NEUTRAL,
) -> Stat:
    """The value of now; of a query with a legend, the legend."""
    panel = (
        Stat()
        .title(title)
        .description(meaning)
        .datasource(SOURCE)
        .unit(unit)
        .span(4)
        .height(4)
        .no_value("unknown")
        .thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(list(colours)))
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .with_target(_query("A", line).instant())
    )
    return panel.text_mode(BigValueTextMode.NAME) if line.legend else panel


def table(title: str, meaning: str, *columns: Column, links: Mapping[str, str] = {}) -> Table:
    """A row for each set of labels, and a column for each query; `links` has where the values of a
    label lead to."""
    panel = Table().title(title).description(meaning).datasource(SOURCE).span(WIDTH).height(9)
    names: dict[str, str] = {}
    for name, column in _named(columns):
        query = _query(name, Line(column.query, column.title))
        panel.with_target(query.format(PromQueryFormat.TABLE).instant())
        if column.title:
            panel.override_by_name(column.title, [DynamicConfigValue("unit", column.unit)])
        names[f"Value #{name}" if len(columns) > 1 else "Value"] = column.title
    for label, url in links.items():
        link = {"title": f"Open this {label}", "url": url}
        panel.override_by_name(label, [DynamicConfigValue("links", [link])])
    hidden = {"Time": True, **({} if len(columns) > 1 else {"Value": True})}
    organize = {"excludeByName": hidden, "renameByName": names}
    panel.with_transformation(DataTransformerConfig("merge", options={}))
    return panel.with_transformation(DataTransformerConfig("organize", options=organize))


def page(uid: str, title: str, meaning: str) -> Dashboard:
    """An empty one that asks which Prometheus."""
    return (
        Dashboard(title)
        .uid(f"{TAG}-{uid}")
        .description(meaning)
        .tags([TAG])
        .readonly()
        .refresh("30s")
        .time("now-1h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            DashboardLink("Speculation")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .keep_time(True)
        )
        .with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )


def choice(name: str, label: str, of: str) -> QueryVariable:
    """A variable with the values that a label has."""
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(of)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def text(dashboard: Dashboard) -> str:
    """As Grafana reads it."""
    return f"{JSONEncoder(sort_keys=True, indent=2).encode(dashboard.build())}\n"


def _named(lines: Sequence[Some]) -> Iterable[tuple[str, Some]]:
    return zip("ABCDEFGHIJ", lines, strict=False)


def _query(name: str, line: Line) -> Dataquery:
    return Dataquery().expr(line.query).legend_format(line.legend).ref_id(name).datasource(SOURCE)
