"""What status and tuner say of each model, for Prometheus: read when a page is asked for.

There are no series of a model that is gone, and none of what is not known: absent is not zero.
Counters start at zero with the process. Only the operator that leads has models to tell of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from speculative_operator.api.status import Mode
from speculative_operator.controller.metrics import described
from speculative_operator.controller.metrics.described import Described
from speculative_operator.controller.metrics.families import counter, gauge
from speculative_operator.controller.tuner.fleet import ModelTold, Told
from speculative_operator.tuning.alternatives import best_gain


class ModelMetrics(Collector):
    """The series of all models."""

    def __init__(self, told: Callable[[], Told], clock: Callable[[], float]) -> None:
        """`clock` gives Unix time."""
        self._told = told
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """One family after the other, each with all models."""
        told = self._told()
        yield from _words(told)
        yield from _gauges(told, self._clock())
        yield from _counters(told)


def _words(told: Told) -> Iterator[Metric]:
    """What is a word and no number: 1 at the word that holds."""
    info, condition, mode = map(gauge, (described.INFO, described.CONDITION, described.MODE))
    for each in told:
        state = each.state
        if state.method is not None:
            info.add_metric((*each.labels, state.method), 1)
        for kind, status, reason in state.conditions:
            condition.add_metric((*each.labels, kind.value, status.value, reason), 1)
        if state.mode is not None:
            mode.add_metric((*each.labels, state.mode.value), 1)
    return iter((info, condition, mode))


def _gauges(told: Told, now: float) -> Iterator[Metric]:
    for of, value_of in (*OF_STATE, *OF_VIEW):
        family = gauge(of)
        for each in told:
            value = value_of(each)
            if value is not None:
                family.add_metric(each.labels, value)
        yield family
    age = gauge(described.EVIDENCE_AGE)
    for each in told:
        if each.evidence is not None:
            age.add_metric(each.labels, max(now - each.evidence.measured_at, 0.0))
    yield age


def _length(told: ModelTold) -> float | None:
    """What is played: the table is that of engines with speculation, whether or not they run."""
    if told.view is None:
        return None
    return 0 if told.state.mode is Mode.AUTOREGRESSIVE else told.view.main_length


OF_STATE: tuple[tuple[Described, Callable[[ModelTold], float | None]], ...] = (
    (described.REPLICAS_WANTED, lambda told: told.state.wanted),
    (described.REPLICAS, lambda told: told.state.replicas),
    (described.REPLICAS_READY, lambda told: told.state.ready),
)
OF_VIEW: tuple[tuple[Described, Callable[[ModelTold], float | None]], ...] = (
    (described.LENGTH, _length),
    (described.ACCEPTANCE, lambda told: told.evidence.acceptance if told.evidence else None),
    (
        described.ACCEPTANCE_LENGTH,
        lambda told: told.evidence.acceptance_length if told.evidence else None,
    ),
    (described.GOODPUT, lambda told: told.evidence.goodput if told.evidence else None),
    (described.SPEEDUP, lambda told: told.evidence.speedup if told.evidence else None),
    (described.BEST_GAIN, lambda told: best_gain(told.view.alternatives) if told.view else None),
)


def _counters(told: Told) -> Iterator[Metric]:
    decisions, switches, regret = map(
        counter, (described.DECISIONS, described.SWITCHES, described.REGRET)
    )
    for each in told:
        if each.view is None:
            continue
        tally = each.view.tally
        for reason, count in tally.decisions.items():
            decisions.add_metric((*each.labels, reason.value), count)
        switches.add_metric(each.labels, tally.switches)
        regret.add_metric((*each.labels, "waiting"), tally.regret.waiting)
        regret.add_metric((*each.labels, "exploring"), tally.regret.exploring)
    return iter((decisions, switches, regret))
