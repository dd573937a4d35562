"""The operator's own numbers, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from speculative_operator.cluster.manifests import Reference
from speculative_operator.cluster.queue import BackOff, Outcome
from speculative_operator.controller.model_metrics import ModelMetrics, Told

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counts passes and requests; the page also has the process's memory and CPU."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._passes = Histogram(
            "speculative_operator_reconcile_seconds",
            "Passes over models, by what they ended in.",
            ("outcome",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._requests = Counter(
            "speculative_operator_api_requests",
            "Requests to the API server, watches left out.",
            ("method", "kind", "status"),
            registry=self.registry,
        )

    def watch_queue(self, waiting: Callable[[], int]) -> None:
        """Shows how many models wait for a worker."""
        gauge = Gauge(
            "speculative_operator_queue_length",
            "Models that wait for a worker.",
            registry=self.registry,
        )
        gauge.set_function(waiting)

    def watch_models(self, told: Callable[[], Told]) -> None:
        """Shows what the tuner says of each model."""
        self.registry.register(ModelMetrics(told, time.time))

    def request(self, method: str, kind: str, status: int) -> None:
        """One answered request."""
        self._requests.labels(method, kind, status).inc()

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
