"""The operator's own numbers, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from speculative_operator import __version__
from speculative_operator.cluster.client import Refused
from speculative_operator.cluster.manifests import Reference
from speculative_operator.cluster.queue import BackOff, Outcome
from speculative_operator.controller.metrics import described
from speculative_operator.controller.metrics.described import Described
from speculative_operator.controller.metrics.lease import LeaseMetrics, Term
from speculative_operator.controller.metrics.models import ModelMetrics
from speculative_operator.controller.tuner.fleet import Told
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import ClusterFault, Contested, EngineSilent, NotAllowed, NotOurs
from speculative_operator.tuning.page import Page

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

ERRORS = tuple(kind.__name__ for kind in (NotOurs, Contested, NotAllowed, ClusterFault, Refused))
UNEXPECTED = "Unexpected"


class Queue(Protocol):
    """What is told of a work queue, in keys."""

    def waiting(self) -> int: ...

    def working(self) -> int: ...

    def failing(self) -> int: ...


class Metrics:
    """Counts passes and requests; the page also has the process's memory and CPU."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._gauge(described.BUILD_INFO).labels(__version__).set(1)
        self._passes = self._histogram(described.PASSES)
        self._errors = self._counter(described.ERRORS)
        for name in (*ERRORS, UNEXPECTED):
            self._errors.labels(name)  # counted from 0 on: the first one is a growth, too
        self._requests = self._counter(described.API_REQUESTS)
        self._reads = self._histogram(described.ENGINE_READS)

    def watch_queue(self, queue: Queue) -> None:
        """Shows how many models wait, are worked on, and have failed."""
        self._gauge(described.QUEUE_WAITING).set_function(queue.waiting)
        self._gauge(described.QUEUE_WORKING).set_function(queue.working)
        self._gauge(described.QUEUE_FAILING).set_function(queue.failing)

    def watch_models(self, told: Callable[[], Told]) -> None:
        """Shows what status and tuner say of each model."""
        self.registry.register(ModelMetrics(told, time.time))

    def watch_lease(self, term: Term) -> None:
        """Shows whether this process leads."""
        self.registry.register(LeaseMetrics(term))

    def request(self, method: str, kind: str, status: int) -> None:
        """One answered request."""
        self._requests.labels(method, kind, status).inc()

    def failed(self, error: Exception) -> None:
        """One pass that an error has ended or cut short."""
        name = type(error).__name__
        self._errors.labels(name if name in ERRORS else UNEXPECTED).inc()

    def timed(
        self, work: Callable[[Reference], Awaitable[Outcome]]
    ) -> Callable[[Reference], Awaitable[Outcome]]:
        """`work`, with its passes counted and timed."""

        async def timed_work(reference: Reference) -> Outcome:
            started = time.perf_counter()
            outcome = await work(reference)
            name = "failed" if isinstance(outcome, BackOff) else "done"
            self._passes.labels(name).observe(time.perf_counter() - started)
            return outcome

        return timed_work

    async def timed_read(self, source: str, reading: Awaitable[Page]) -> Page:
        """The page that a reading brings, counted and timed."""
        started, outcome = time.perf_counter(), "read"
        try:
            return await reading
        except EngineSilent as silence:
            outcome = "unreadable" if isinstance(silence, PageUnreadable) else "silent"
            raise
        finally:
            self._reads.labels(source, outcome).observe(time.perf_counter() - started)

    def _counter(self, of: Described) -> Counter:
        return Counter(of.name, of.meaning, of.labels, registry=self.registry)

    def _gauge(self, of: Described) -> Gauge:
        return Gauge(of.name, of.meaning, of.labels, registry=self.registry)

    def _histogram(self, of: Described) -> Histogram:
        return Histogram(of.name, of.meaning, of.labels, buckets=SECONDS, registry=self.registry)
