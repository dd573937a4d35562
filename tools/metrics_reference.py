"""The reference page of metrics: the operator's from their descriptions, the plugin's from a page
of its own."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from live_speculation.ledger import Outcome, Step
from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import metrics
from live_speculation.schedule import parse
from speculative_operator.controller.metrics.described import (
    MODEL_PREFIX,
    OF_MODELS,
    OF_OPERATOR,
    OPERATOR_PREFIX,
    Described,
    Kind,
)

INTRODUCTION = """\
# Metrics

Names end in their unit, and counters in `_total`.
What is not known has no series: absent is not zero.
How Prometheus gets at them, dashboards and alerts: [operations](../operations.md#prometheus).
"""

OPERATOR = f"""\
## The operator

On its port `metrics` (8080) at `/metrics`, in every replica, a standby's too.
All begin with `{OPERATOR_PREFIX}_`; `process_…` and `python_gc_…` stand beside them.
Counters start at zero with the process.
"""

MODELS = f"""\
## Models

On the same page, of the replica that leads: a standby tells of none.
All begin with `{MODEL_PREFIX}_`.
They have the labels `namespace` and `name`, besides those named here.
A model's series go with it.
"""

ENGINES = """\
## Engines

On the port `speculation` (9405) of each pod at `/metrics`, from the plugin.
vLLM's own stand on the port `http` (8000).

- `k` is the proposal length that was asked for.
- `batch` is the upper edge of a cell of batch sizes.
- `phase` is `decode`, or `mixed` where a request brings prompt tokens.
- `position` counts from 0.

With five choices and traffic at ten batch sizes a pod has some 1,000 series.
"""

SCHEDULE = b"""{"protocol":1,"table":[[1,1,1]],
"trials":[{"batch":[1,1],"arms":[0],"share":0.1,"block":1,"rounds":1}]}"""


def metrics_reference() -> str:
    """The page as Markdown."""
    return "\n".join(
        [
            INTRODUCTION,
            OPERATOR,
            _table(OF_OPERATOR),
            MODELS,
            _table(_without_model_labels(OF_MODELS)),
            ENGINES,
            _table(_of_plugin()),
        ]
    )


def _without_model_labels(families: Iterable[Described]) -> Iterable[Described]:
    for of in families:
        own = tuple(label for label in of.labels if label not in ("namespace", "name"))
        yield Described(of.name, of.kind, of.meaning, own)


def _of_plugin() -> Iterable[Described]:
    """From a page on which each family has a sample."""
    live = LiveSpeculation(Engine(vllm="", lengths=frozenset({0, 1})))
    live.offer(parse(SCHEDULE, live.engine.lengths))
    live.table(0.0)
    step = Step(asked=1, batch=1, mixed=False, timed=True, began=0.0)
    live.ledger.book(step, 1.0, 2, Outcome(1, 1, 1, [1], [1]))
    for family in text_string_to_metric_families(metrics(live)):
        labels = tuple(family.samples[0].labels)
        yield Described(family.name, Kind(family.type), family.documentation, labels)


def _table(families: Iterable[Described]) -> str:
    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for of in families:
        labels = ", ".join(f"`{label}`" for label in of.labels)
        rows.append(f"| `{of.series}` | {of.kind} | {labels} | {of.meaning} |")
    return "\n".join([*rows, ""])
