"""What the tuner says of each model, for Prometheus: read from its views when a page is asked for.

There are no series of a model that is gone, and none of what is not known: absent is not zero.
Counters start at zero with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.tuner_ports import TuningView
from speculative_operator.tuning.alternatives import best_gain

MODEL = ("namespace", "name")
PREFIX = "speculative_operator_model"

Told = tuple[tuple[Reference, TuningView], ...]


class ModelMetrics(Collector):
    """The series of all models that there is a view of."""

    def __init__(self, told: Callable[[], Told], clock: Callable[[], float]) -> None:
        """`clock` gives Unix time."""
        self._told = told
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """One family after the other, each with all models."""
        told = self._told()
        yield from _counters(told)
        yield from _gauges(told, self._clock())


def _counters(told: Told) -> Iterator[Metric]:
    decisions = CounterMetricFamily(
        f"{PREFIX}_decisions",
        "Decisions on the proposal length, advice of mode Recommend included.",
        labels=(*MODEL, "reason"),
    )
    switches = CounterMetricFamily(
        f"{PREFIX}_switches", "Changes of the proposal length that were played.", labels=MODEL
    )
    regret = CounterMetricFamily(
        f"{PREFIX}_regret_tokens",
        "Estimated tokens lost against the best measured proposal length: while another one was in "
        "force (waiting) and in trials (exploring).",
        labels=(*MODEL, "cause"),
    )
    for model, view in told:
        labels = (model.namespace, model.name)
        for reason, count in view.tally.decisions.items():
            decisions.add_metric((*labels, reason.value), count)
        switches.add_metric(labels, view.tally.switches)
        regret.add_metric((*labels, "waiting"), view.tally.regret.waiting)
        regret.add_metric((*labels, "exploring"), view.tally.regret.exploring)
    return iter((decisions, switches, regret))


def _gauges(told: Told, now: float) -> Iterator[Metric]:
    found: tuple[tuple[str, str, Callable[[TuningView], float | None]], ...] = (
        (
            "proposal_length",
            "Proposal length at the batch sizes that are seen most.",
            lambda view: view.main_length,
        ),
        (
            "goodput_tokens_per_second",
            "Generated tokens a second and replica while decoding, in the last window.",
            lambda view: view.evidence.goodput if view.evidence else None,
        ),
        (
            "best_alternative_gain_ratio",
            "Expected change of goodput by the best other measured length; negative if slower.",
            lambda view: best_gain(view.alternatives),
        ),
        (
            "evidence_age_seconds",
            "Time since the end of the last window with evidence.",
            lambda view: max(now - view.evidence.measured_at, 0.0) if view.evidence else None,
        ),
    )
    for name, meaning, value_of in found:
        family = GaugeMetricFamily(f"{PREFIX}_{name}", meaning, labels=MODEL)
        for model, view in told:
            value = value_of(view)
            if value is not None:
                family.add_metric((model.namespace, model.name), value)
        yield family
