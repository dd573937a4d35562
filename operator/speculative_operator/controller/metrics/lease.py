"""Whether this process leads, for Prometheus: asked of the Lease when a page is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from speculative_operator.controller.metrics.described import LEADING, LEASE_TRANSITIONS
from speculative_operator.controller.metrics.families import gauge

Term = Callable[[], tuple[str, int] | None]
"""The Lease (UID, transitions) under which this process acts, if it does."""


class LeaseMetrics(Collector):
    """The series of one Lease."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def collect(self) -> Iterator[Metric]:
        """A standby has no transitions to tell of."""
        term = self._term()
        leading, transitions = gauge(LEADING), gauge(LEASE_TRANSITIONS)
        leading.add_metric((), 0 if term is None else 1)
        if term is not None:
            transitions.add_metric((), term[1])
        yield from (leading, transitions)
