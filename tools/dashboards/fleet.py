"""All models at a glance: who serves, who speculates, what it brings, what is lost by waiting."""

from __future__ import annotations

from speculative_operator.controller.metrics.described import (
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
    BAD_FROM_1,
    GOOD_FROM_1,
    ONE_SERIES,
    PLAIN,
    SECONDS,
    SHARE,
    TAG,
    TIMES,
    TOKENS_PER_SECOND,
    Column,
    Line,
    chart,
    number,
    page,
    table,
    text,
)

NAMES = "namespace, name"
TO_MODEL = (
    f"/d/{TAG}-model?var-namespace=${{__data.fields.namespace}}&var-model=${{__data.fields.name}}"
)
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
                colours=BAD_FROM_1,
            )
        )
        .with_panel(
            number(
                "Stalled",
                "Models that wait for somebody to do something.",
                Line(f'count({CONDITION.series}{{condition="Stalled"}}) or vector(0)'),
                colours=BAD_FROM_1,
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
                colours=GOOD_FROM_1,
            )
        )
        .with_panel(
            table(
                "Models",
                "What is not known is empty.",
                *(
                    Column(f"max by ({NAMES}) ({of.series})", title, unit)
                    for of, title, unit in (
                        (REPLICAS_WANTED, "wanted", PLAIN),
                        (REPLICAS_READY, "ready", PLAIN),
                        (LENGTH, "K", PLAIN),
                        (ACCEPTANCE, "acceptance", SHARE),
                        (SPEEDUP, "speed-up", TIMES),
                        (GOODPUT, "goodput of a replica", TOKENS_PER_SECOND),
                    )
                ),
                links={"name": TO_MODEL},
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
                Line(f"max {ONE_SERIES} ({SPEEDUP.series})", "{{namespace}}/{{name}}"),
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
                Line(f"max {ONE_SERIES} ({EVIDENCE_AGE.series})", "{{namespace}}/{{name}}"),
                unit=SECONDS,
            )
        )
    )
