"""What the operator counts of itself, read from its /metrics."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

REQUESTS = "speculative_operator_api_requests_total"


@dataclass(frozen=True)
class Counters:
    """Since the start of the process. Requests for the Lease, and watches, are not in it."""

    reads: float
    writes: float
    events: float
    cpu_seconds: float
    memory_bytes: float

    @classmethod
    def read(cls, page: str) -> Counters:
        """From the page's text."""
        samples = [
            sample for family in text_string_to_metric_families(page) for sample in family.samples
        ]
        requests = [
            sample
            for sample in samples
            if sample.name == REQUESTS and sample.labels["kind"] != "Lease"
        ]
        events = [sample for sample in requests if sample.labels["kind"] == "Event"]
        reads = [sample for sample in requests if sample.labels["method"] == "GET"]
        values = {sample.name: sample.value for sample in samples if not sample.labels}
        return cls(
            reads=sum(sample.value for sample in reads),
            writes=sum(sample.value for sample in requests)
            - sum(sample.value for sample in (*reads, *events)),
            events=sum(sample.value for sample in events),
            cpu_seconds=values["process_cpu_seconds_total"],
            memory_bytes=values["process_resident_memory_bytes"],
        )

    def __sub__(self, earlier: Counters) -> Counters:
        """What came between; memory is that of now."""
        return Counters(
            self.reads - earlier.reads,
            self.writes - earlier.writes,
            self.events - earlier.events,
            self.cpu_seconds - earlier.cpu_seconds,
            self.memory_bytes,
        )
