"""vLLM's own /metrics page: the names, labels and buckets of pages recorded from vLLM 0.32."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from local.simulated_engine.engine import Completed, Engine, Request

_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_LATENCY = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
_FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_REQUEST = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip

_COUNTERS = (
    "estimated_flops_per_gpu",
    "estimated_read_bytes_per_gpu",
    "estimated_write_bytes_per_gpu",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "external_prefix_cache_queries",
    "external_prefix_cache_hits",
    "mm_cache_queries",
    "mm_cache_hits",
    "num_preemptions",
    "prompt_tokens",
    "prompt_tokens_cached",
    "generation_tokens",
)
_SPECULATIVE_COUNTERS = (
    "spec_decode_num_drafts",
    "spec_decode_num_draft_tokens",
    "spec_decode_num_accepted_tokens",
)
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"
_SPLIT_COUNTERS = {
    "prompt_tokens_by_source": (
        "source",
        ("local_compute", "local_cache_hit", "external_kv_transfer"),
    ),
    "prompt_tokens_cached_by_source": (
        "source",
        ("device", "host", "p2p", "disk", "external_unspecified"),
    ),
    "request_success": ("finished_reason", ("stop", "length", "abort", "error", "repetition")),
}
"""Counters with one more label: its name and values."""

_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
_SPLIT_GAUGES = {
    "num_requests_waiting_by_reason": ("reason", ("capacity", "deferred")),
    "engine_sleep_state": ("sleep_state", ("awake", "weights_offloaded", "discard_all")),
}
_HISTOGRAMS: dict[str, tuple[float, ...]] = {
    "request_prompt_tokens": _TOKENS,
    "request_generation_tokens": _TOKENS,
    "iteration_tokens_total": (1, *(2**power for power in range(3, 15))),
    "request_max_num_generation_tokens": _TOKENS,
    "request_params_n": (1, 2, 5, 10, 20),
    "request_params_max_tokens": _TOKENS,
    "time_to_first_token_seconds": _FIRST_TOKEN,
    "inter_token_latency_seconds": _LATENCY,
    "request_time_per_output_token_seconds": _LATENCY,
    "e2e_request_latency_seconds": _REQUEST,
    "request_queue_time_seconds": _REQUEST,
    "request_inference_time_seconds": _REQUEST,
    "request_prefill_time_seconds": _REQUEST,
    "request_decode_time_seconds": _REQUEST,
    "request_num_preemptions": (1, 2, 3, 4, 5, 10, 20),
    "request_prefill_kv_computed_tokens": _TOKENS,
}
_ENGINE = "0"


class VllmMetrics:
    """The page of one engine that serves `model`. `length` is the configured K, 0 for none."""

    def __init__(self, engine: Engine, *, model: str, length: int) -> None:
        self._engine = engine
        self._model = model
        self._length = length
        self.reset()

    def reset(self) -> None:
        """Starts every counter again at zero, as a restarted process does."""
        self._registry = CollectorRegistry()
        labels, values = ("model_name", "engine"), (self._model, _ENGINE)
        counters = _COUNTERS + (_SPECULATIVE_COUNTERS if self._length else ())
        split = dict(_SPLIT_COUNTERS)
        if self._length:
            split[_PER_POSITION] = ("position", tuple(map(str, range(self._length))))
        self._counter = {
            name: Counter(*_described(name), labels, registry=self._registry).labels(*values)
            for name in counters
        }
        self._split: dict[tuple[str, str], Counter] = {}
        for name, (label, parts) in split.items():
            family = Counter(*_described(name), (*labels, label), registry=self._registry)
            for part in parts:
                self._split[name, part] = family.labels(*values, part)
        rejections = Counter(
            *_described("admission_rejections"), ("model_name", "reason"), registry=self._registry
        )
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            rejections.labels(self._model, reason)
        self._gauge = {
            name: Gauge(*_described(name), labels, registry=self._registry).labels(*values)
            for name in _GAUGES
        }
        self._split_gauge: dict[tuple[str, str], Gauge] = {}
        for name, (label, parts) in _SPLIT_GAUGES.items():
            gauge = Gauge(*_described(name), (*labels, label), registry=self._registry)
            for part in parts:
                self._split_gauge[name, part] = gauge.labels(*values, part)
        self._split_gauge["engine_sleep_state", "awake"].set(1)
        self._histogram = {
            name: Histogram(
                *_described(name), labels, buckets=buckets, registry=self._registry
            ).labels(*values)
            for name, buckets in _HISTOGRAMS.items()
        }
        config = Gauge(
            *_described("cache_config_info"), ("engine", "block_size"), registry=self._registry
        )
        config.labels(_ENGINE, "16").set(1)

    def stepped(self, step: Completed) -> None:
        """Books one step."""
        for name in ("prompt_tokens", "prefix_cache_queries"):
            self._counter[name].inc(step.prompt_tokens)
        self._split["prompt_tokens_by_source", "local_compute"].inc(step.prompt_tokens)
        self._counter["generation_tokens"].inc(step.generated)
        self._histogram["iteration_tokens_total"].observe(step.prompt_tokens + step.generated)
        for _ in range(step.decoded):
            self._histogram["inter_token_latency_seconds"].observe(step.seconds)
        drafts, draft_tokens, accepted, _, accepted_at = step.outcome
        if drafts:
            for name, count in zip(
                _SPECULATIVE_COUNTERS, (drafts, draft_tokens, accepted), strict=True
            ):
                self._counter[name].inc(count)
            for position, count in enumerate(accepted_at):
                self._split[_PER_POSITION, str(position)].inc(count)

    def ended(self, request: Request, reason: str, now: float) -> None:
        """Books one request that left, with vLLM's `finished_reason`."""
        self._split["request_success", reason].inc()
        decoding = now - request.first_token
        for name, value in {
            "request_prompt_tokens": request.prompt_tokens,
            "request_prefill_kv_computed_tokens": request.prompt_tokens,
            "request_generation_tokens": request.generated,
            "request_max_num_generation_tokens": request.generated,
            "request_params_n": 1,
            "request_params_max_tokens": request.limit,
            "request_num_preemptions": 0,
            "time_to_first_token_seconds": request.first_token - request.arrived,
            "e2e_request_latency_seconds": now - request.arrived,
            "request_queue_time_seconds": request.scheduled - request.arrived,
            "request_inference_time_seconds": now - request.scheduled,
            "request_prefill_time_seconds": request.first_token - request.scheduled,
            "request_decode_time_seconds": decoding,
            "request_time_per_output_token_seconds": decoding / max(request.generated - 1, 1),
        }.items():
            self._histogram[name].observe(value)

    def page(self) -> str:
        """The page as Prometheus text."""
        running, waiting = self._engine.load()
        self._gauge["num_requests_running"].set(running)
        self._gauge["num_requests_waiting"].set(waiting)
        self._split_gauge["num_requests_waiting_by_reason", "capacity"].set(waiting)
        return generate_latest(self._registry).decode()


def _described(name: str) -> tuple[str, str]:
    return f"vllm:{name}", f"As vLLM's {name}."
