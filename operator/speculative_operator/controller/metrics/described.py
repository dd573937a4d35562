"""Every metric of the operator: its name, its kind, its labels and what it says.

The families are built from here, and so is the page `docs/reference/metrics.md`. Labels are
bounded: names of models, and words that the code has a list of. Nothing is told by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OPERATOR_PREFIX = "speculative_operator"
MODEL_PREFIX = f"{OPERATOR_PREFIX}_model"


class Kind(StrEnum):
    """As Prometheus calls them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Described:
    """One family. `name` is without the `_total` that a counter's series end in."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> str:
        """As it is asked for, but for a histogram's `_bucket`, `_sum` and `_count`."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


def _operator(name: str, kind: Kind, meaning: str, *labels: str) -> Described:
    return Described(f"{OPERATOR_PREFIX}_{name}", kind, meaning, labels)


def _model(name: str, kind: Kind, meaning: str, *labels: str) -> Described:
    return Described(f"{MODEL_PREFIX}_{name}", kind, meaning, ("namespace", "name", *labels))


BUILD_INFO = _operator("build_info", Kind.GAUGE, "Always 1; which operator this is.", "version")
LEADING = _operator(
    "leading", Kind.GAUGE, "1 while this process holds the Lease and acts, 0 while it stands by."
)
LEASE_TRANSITIONS = _operator(
    "lease_transitions",
    Kind.GAUGE,
    "How often the Lease has changed hands, as it says itself; only while this process leads.",
)
PASSES = _operator(
    "reconcile_seconds", Kind.HISTOGRAM, "Passes over models, by what they ended in.", "outcome"
)
ERRORS = _operator(
    "reconcile_errors",
    Kind.COUNTER,
    "Passes that an error has ended or cut short, by its class: NotOurs, Contested, NotAllowed, "
    "ClusterFault (no answer), Refused (the API server's answer), Unexpected (a fault of the "
    "operator).",
    "error",
)
QUEUE_WAITING = _operator("queue_length", Kind.GAUGE, "Models that wait for a worker.")
QUEUE_WORKING = _operator("queue_working", Kind.GAUGE, "Models that a worker is at.")
QUEUE_FAILING = _operator(
    "queue_failing", Kind.GAUGE, "Models whose last pass has failed; they are tried again."
)
API_REQUESTS = _operator(
    "api_requests",
    Kind.COUNTER,
    "Answers of the API server, by HTTP's status; watches are left out.",
    "method",
    "kind",
    "status",
)
ENGINE_READS = _operator(
    "engine_read_seconds",
    Kind.HISTOGRAM,
    "Readings of engines' numbers, by tuning.source and outcome: read, silent (no answer) or "
    "unreadable (no page of numbers).",
    "source",
    "outcome",
)

OF_OPERATOR = (
    BUILD_INFO,
    LEADING,
    LEASE_TRANSITIONS,
    PASSES,
    ERRORS,
    QUEUE_WAITING,
    QUEUE_WORKING,
    QUEUE_FAILING,
    API_REQUESTS,
    ENGINE_READS,
)

INFO = _model("info", Kind.GAUGE, "Always 1; which method of speculation is asked for.", "method")
CONDITION = _model(
    "condition",
    Kind.GAUGE,
    "Always 1; one series a condition of the status, with its status and reason of now.",
    "condition",
    "status",
    "reason",
)
MODE = _model("mode", Kind.GAUGE, "Always 1; what the replicas do now, as in the status.", "mode")
REPLICAS_WANTED = _model("replicas_wanted", Kind.GAUGE, "spec.replicas.")
REPLICAS = _model("replicas", Kind.GAUGE, "Pods of all revisions.")
REPLICAS_READY = _model("replicas_ready", Kind.GAUGE, "Pods that serve.")
LENGTH = _model(
    "proposal_length", Kind.GAUGE, "K in force at the batch sizes that are seen most; 0 is plain."
)
ACCEPTANCE = _model(
    "acceptance_ratio", Kind.GAUGE, "Accepted of all draft tokens in the last window, 0 to 1."
)
ACCEPTANCE_LENGTH = _model(
    "acceptance_length_tokens",
    Kind.GAUGE,
    "Mean tokens that a request gets of a step, the bonus token included: 1 to K+1.",
)
GOODPUT = _model(
    "goodput_tokens_per_second",
    Kind.GAUGE,
    "Generated tokens a second and replica while decoding, in the last window.",
)
SPEEDUP = _model(
    "speedup_ratio",
    Kind.GAUGE,
    "Measured goodput over that of K=0 on the same engines; 1 is no gain.",
)
BEST_GAIN = _model(
    "best_alternative_gain_ratio",
    Kind.GAUGE,
    "Expected change of goodput by the best other measured K; -0.1 is 10% slower.",
)
EVIDENCE_AGE = _model(
    "evidence_age_seconds", Kind.GAUGE, "Time since the end of the last window with evidence."
)
DECISIONS = _model(
    "decisions",
    Kind.COUNTER,
    "Decisions on K, advice of mode Recommend included, by the reason of their Event.",
    "reason",
)
SWITCHES = _model("switches", Kind.COUNTER, "Changes of K that were played.")
REGRET = _model(
    "regret_tokens",
    Kind.COUNTER,
    "Estimated tokens lost against the best measured K: while another one was in force (waiting) "
    "and in trials (exploring).",
    "cause",
)

OF_MODELS = (
    INFO,
    CONDITION,
    MODE,
    REPLICAS_WANTED,
    REPLICAS,
    REPLICAS_READY,
    LENGTH,
    ACCEPTANCE,
    ACCEPTANCE_LENGTH,
    GOODPUT,
    SPEEDUP,
    BEST_GAIN,
    EVIDENCE_AGE,
    DECISIONS,
    SWITCHES,
    REGRET,
)
