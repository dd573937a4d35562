"""All models at a glance: who serves, who speculates, what it brings, what is lost by waiting."""

from __future__ import annotations

from speculative_operator.controller.described import (
    ACCEPTANCE,
    CONDITION,
    DECISIONS,
    EVIDENCE_AGE,
    GOODPUT,
    INFO,
    LENGTH,
    MODE,
    REGRET,
    REPLICAS_READY,
    REPLICAS_WANTED,
    SPEEDUP,
)
from tools.dashboards.parts import (
    SECONDS,
    TIMES,
    TOKENS_PER_SECOND,
    Line,
    chart,
    number,
    page,
    table,
    text,
)

NAMES = "namespace, name"
READY = f'{CONDITION.series}{{condition="Ready"}}'


def fleet() -> str:
    """Grafana's JSON."""
    return text(
        page("fleet", "Speculation: fleet", "All models of the speculative operator.")
        .with_panel(number("Models", "SpeculativeModels that there are.", Line(f"count({READY})")))
        .with_panel(
            number(
                "Not ready",
                "Models of which not every wanted replica serves.",
                Line(f'count({READY[:-1]},status!="True"}}) or vector(0)'),
            )
        )
        .with_panel(
            number(
                "Stalled",
                "Models that wait for somebody to do something.",
                Line(f'count({CONDITION.series}{{condition="Stalled"}}) or vector(0)'),
            )
        )
        .with_panel(
            number(
                "Speculating",
                "Models that propose drafts at the load of now.",
                Line(f'count({MODE.series}{{mode="Speculative"}}) or vector(0)'),
            )
        )
        .with_panel(
            number(
                "Goodput",
                "Of all ready replicas while they decode.",
                Line(f"sum({GOODPUT.series} * {REPLICAS_READY.series})"),
                unit=TOKENS_PER_SECOND,
            )
        )
        .with_panel(
            number(
                "Median speed-up",
                "Over plain decoding on the same engines, as measured.",
                Line(f"quantile(0.5, {SPEEDUP.series})"),
                unit=TIMES,
            )
        )
        .with_panel(
            table(
                "Models",
                "What is not known is empty.",
                *(
                    Line(f"sum by ({NAMES}) ({of.series})", title)
                    for of, title in (
                        (REPLICAS_WANTED, "wanted"),
                        (REPLICAS_READY, "ready"),
                        (LENGTH, "K"),
                        (ACCEPTANCE, "acceptance"),
                        (SPEEDUP, "speed-up"),
                        (GOODPUT, "goodput"),
                    )
                ),
            )
        )
        .with_panel(
            chart(
                "What is wrong",
                "Models by condition and reason, where a condition is False.",
                Line(
                    "count by (condition, reason) ("
                    f'{CONDITION.series}{{condition!="Progressing",status="False"}})',
                    "{{condition}}: {{reason}}",
                ),
            )
        )
        .with_panel(
            chart(
                "Modes",
                "Models by what their replicas do.",
                Line(f"count by (mode) ({MODE.series})", "{{mode}}"),
            )
        )
        .with_panel(
            chart(
                "Methods",
                "Models by the method of speculation that is asked for.",
                Line(f"count by (method) ({INFO.series})", "{{method}}"),
            )
        )
        .with_panel(
            chart(
                "Speed-up",
                "Goodput over that of K=0 on the same engines; below 1 speculation costs.",
                Line(SPEEDUP.series, "{{namespace}}/{{name}}"),
                unit=TIMES,
            )
        )
        .with_panel(
            chart(
                "Tokens lost",
                "Against the best measured K: while another one was in force, and in trials.",
                Line(f"sum by (cause) (rate({REGRET.series}[$__rate_interval]))", "{{cause}}"),
                unit=TOKENS_PER_SECOND,
            )
        )
        .with_panel(
            chart(
                "Decisions",
                "In the hour before, by reason.",
                Line(f"sum by (reason) (increase({DECISIONS.series}[1h]))", "{{reason}}"),
            )
        )
        .with_panel(
            chart(
                "Age of evidence",
                "Since the last window that said something; it grows where there is no traffic.",
                Line(EVIDENCE_AGE.series, "{{namespace}}/{{name}}"),
                unit=SECONDS,
            )
        )
    )
