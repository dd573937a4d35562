"""The operator itself: who leads, how fast it is, what fails, what it costs."""

from __future__ import annotations

from speculative_operator.controller.metrics.described import (
    API_REQUESTS,
    BUILD_INFO,
    ENGINE_READS,
    ERRORS,
    LEADING,
    LEASE_TRANSITIONS,
    PASSES,
    QUEUE_FAILING,
    QUEUE_WAITING,
    QUEUE_WORKING,
    Described,
)
from tools.dashboards.parts import (
    BAD_FROM_1,
    BYTES,
    ONLY_1,
    PER_SECOND,
    SECONDS,
    SHARE,
    Line,
    chart,
    number,
    page,
    text,
)

REFUSED = f'{API_REQUESTS.series}{{status=~"4..|5.."}}'
INTERVAL = "[$__rate_interval]"
BESIDE_IT = f"* on (instance) group_left () {LEADING.series} ^ 0"
"""Of the operator's processes only: every program has these two series."""


def operator() -> str:
    """Grafana's JSON."""
    dashboard = page("operator", "Speculation: operator", "The speculative operator itself.")
    for panel in (
        number(
            "Leading",
            "Replicas that hold the Lease of their release: one. Of several releases the fewest.",
            Line(f"min(sum by (namespace) ({LEADING.series}))"),
            colours=ONLY_1,
        ),
        number("Replicas", "That run.", Line(f"count({LEADING.series})")),
        number("Version", "Of each replica.", Line(BUILD_INFO.series, "{{version}}")),
        number(
            "Lease", "How often it has changed hands.", Line(f"max({LEASE_TRANSITIONS.series})")
        ),
        number("Queue", "Models that wait for a worker.", Line(f"sum({QUEUE_WAITING.series})")),
        number(
            "Failing",
            "Models whose last pass failed.",
            Line(f"sum({QUEUE_FAILING.series})"),
            colours=BAD_FROM_1,
        ),
        chart(
            "Passes",
            "Over models, by what they ended in.",
            _rate(f"{PASSES.series}_count", "outcome"),
            unit=PER_SECOND,
        ),
        chart(
            "Time of a pass",
            "Median, and what 95 of 100 take at most.",
            *_quantiles(PASSES),
            unit=SECONDS,
        ),
        chart(
            "Errors",
            "By class. Unexpected is a fault of the operator: its log has the rest.",
            _rate(ERRORS.series, "error"),
            unit=PER_SECOND,
        ),
        chart(
            "Queue",
            "Models that wait, are worked on, and whose last pass failed.",
            Line(f"sum({QUEUE_WAITING.series})", "waiting"),
            Line(f"sum({QUEUE_WORKING.series})", "working"),
            Line(f"sum({QUEUE_FAILING.series})", "failing"),
        ),
        chart(
            "API requests",
            "Answered by the API server. At rest there are the Lease's alone.",
            _rate(API_REQUESTS.series, "method, kind"),
            unit=PER_SECOND,
        ),
        chart(
            "Refused requests",
            "Answers that are errors. A 409 now and then is a lost race.",
            Line(f"{_rate(REFUSED, 'kind, status').query} or vector(0)", "{{kind}} {{status}}"),
            unit=PER_SECOND,
        ),
        chart(
            "Readings of engines",
            "By source and outcome.",
            _rate(f"{ENGINE_READS.series}_count", "source, outcome"),
            unit=PER_SECOND,
        ),
        chart(
            "Time of a reading",
            "Median, and what 95 of 100 take at most.",
            *_quantiles(ENGINE_READS),
            unit=SECONDS,
        ),
        chart(
            "CPU",
            "Share of one core.",
            Line(f"rate(process_cpu_seconds_total{INTERVAL}) {BESIDE_IT}", "{{instance}}"),
            unit=SHARE,
        ),
        chart(
            "Memory",
            "Resident.",
            Line(f"process_resident_memory_bytes {BESIDE_IT}", "{{instance}}"),
            unit=BYTES,
        ),
    ):
        dashboard.with_panel(panel)
    return text(dashboard)


def _rate(series: str, by: str) -> Line:
    """The growth a second of the sums by some labels."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return Line(f"sum by ({by}) (rate({series}{INTERVAL}))", legend)


def _quantiles(histogram: Described) -> tuple[Line, ...]:
    return tuple(
        Line(
            f"histogram_quantile({q}, sum by (le) (rate({histogram.series}_bucket{INTERVAL})))",
            name,
        )
        for q, name in ((0.5, "median"), (0.95, "95%"))
    )
