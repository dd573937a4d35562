"""Everything the plugin takes for granted about vLLM, with the versions it was read in.

vLLM calls these parts internal. So each fact is written down once, with the place where it was
read, and what can be looked up in the loaded modules is looked up at start: an engine where one
does not hold serves on untouched and says which.

Seen running: 0.32.0 on a CPU, which is Model Runner V1. Of 0.33.0 the scheduler alone, driven with
made-up tokens through these hooks: V1, V2 with asynchronous scheduling, and V2 with two pipeline
stages; each step's drafts were as long as the K they are booked on. Model Runner V2 itself runs
only on a GPU; what it does with K was read in its source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

VERSIONS = ("0.32.0", "0.33.0")
"""vLLM releases whose source was read for every fact below; a local part (`+rocm…`) may follow."""

LIVE_ON_V1 = frozenset({"draft_model", "dflash", "eagle", "eagle3", "mtp", "ngram"})
"""Methods whose V1 proposer takes K per step; V1 asserts K == configured for the others."""

V1, V2 = "V1", "V2"


class NewRequest(Protocol):
    """What is used of vLLM's NewRequestData; no tokens where the prompt came as embeddings."""

    req_id: str
    prompt_token_ids: Sequence[int] | None


class SchedulerOutput(Protocol):
    """What is used of vLLM's class of that name: one step that goes out."""

    scheduled_new_reqs: Sequence[NewRequest]
    num_scheduled_tokens: Mapping[str, int]
    total_num_scheduled_tokens: int
    scheduled_spec_decode_tokens: Mapping[str, Sequence[int]]
    num_spec_tokens_to_schedule: int


class CoreOutputs(Protocol):
    """What is used of vLLM's EngineCoreOutputs: what one client gets of a step."""

    outputs: Sequence[Any]
    scheduler_stats: Any


class Scheduler(Protocol):
    """What is used of vLLM's class of that name."""

    vllm_config: Any
    dynamic_sd_lookup: list[int] | None
    num_spec_tokens: int
    use_v2_model_runner: bool
    log_stats: bool
    running: Sequence[object]
    schedule: Callable[..., SchedulerOutput]
    update_from_output: Callable[[SchedulerOutput, object], Mapping[int, CoreOutputs]]

    def get_request_counts(self) -> tuple[int, int]: ...


@dataclass(frozen=True)
class Internals:
    """vLLM's own classes that the hooks meet, imported by their owner."""

    scheduler: type[Any]
    scheduler_output: type[Any]
    new_request: type[Any]
    spec_decoding_stats: type[Any]
    scheduler_stats: type[Any]
    core_outputs: type[Any]
    core_output: type[Any]


@dataclass(frozen=True)
class Assumption:
    """`fact`, read in the file `where`. `holds` looks it up, None: it was read and cannot be."""

    fact: str
    where: str
    holds: Callable[[Internals], bool] | None = None


def _uses(function: Callable[..., Any], *names: str) -> bool:
    """Whether the function's own code reads or writes these attributes."""
    return set(names) <= set(inspect.unwrap(function).__code__.co_names)


def _has_fields(kind: type[Any], *names: str) -> bool:
    """Whether a dataclass or msgspec struct has these fields."""
    fields = getattr(kind, "__dataclass_fields__", ()) or getattr(kind, "__struct_fields__", ())
    return set(names) <= set(fields)


ASSUMPTIONS = (
    Assumption(
        "Scheduler.__init__ keeps a list `dynamic_sd_lookup`, K by number of scheduled requests "
        "with index 0 unused and max_num_seqs as the last one; None without a start schedule.",
        "v1/core/sched/scheduler.py",
        lambda vllm: _uses(
            vllm.scheduler.__init__, "dynamic_sd_lookup", "build_dynamic_sd_schedule_lookup",
            "num_spec_tokens", "use_v2_model_runner", "vllm_config", "log_stats",
        ),
    ),
    Assumption(
        "Scheduler.schedule reads the list anew at every step that has requests, after they are "
        "chosen, with len(num_scheduled_tokens) as index.",
        "v1/core/sched/scheduler.py",
        lambda vllm: _uses(vllm.scheduler.schedule, "dynamic_sd_lookup"),
    ),
    Assumption(
        "That K goes out as SchedulerOutput.num_spec_tokens_to_schedule: the number of drafts made "
        "at the end of the step, verified by the next step of the same requests.",
        "v1/core/sched/output.py, v1/worker/gpu_model_runner.py (V1), "
        "v1/worker/gpu/model_runner.py (V2)",
        lambda vllm: _has_fields(
            vllm.scheduler_output, "num_scheduled_tokens", "total_num_scheduled_tokens",
            "scheduled_spec_decode_tokens", "scheduled_new_reqs", "num_spec_tokens_to_schedule",
        ),
    ),
    Assumption(
        "EngineCore calls scheduler.schedule and scheduler.update_from_output as attributes of the "
        "instance, in one thread, and updates in the order in which it scheduled, also with "
        "asynchronous scheduling and pipeline parallelism.",
        "v1/engine/core.py",
        lambda vllm: list(inspect.signature(vllm.scheduler.update_from_output).parameters)
        == ["self", "scheduler_output", "model_runner_output"],
    ),
    Assumption(
        "update_from_output returns EngineCoreOutputs by client: the new tokens of each request, "
        "cut at its end, and on one of them scheduler_stats with this step's spec_decoding_stats.",
        "v1/core/sched/scheduler.py, v1/engine/__init__.py",
        lambda vllm: _has_fields(vllm.core_outputs, "outputs", "scheduler_stats")
        and _has_fields(vllm.core_output, "new_token_ids")
        and _has_fields(vllm.scheduler_stats, "spec_decoding_stats"),
    ),
    Assumption(
        "spec_decoding_stats counts requests with drafts, draft tokens and accepted tokens, whole "
        "and by position, drafts refused by a grammar taken out; None in a step without drafts.",
        "v1/spec_decode/metrics.py",
        lambda vllm: _has_fields(
            vllm.spec_decoding_stats, "num_drafts", "num_draft_tokens", "num_accepted_tokens",
            "num_accepted_tokens_per_pos", "num_draft_tokens_per_pos",
        ),
    ),
    Assumption(
        "scheduled_new_reqs has the tokens of each prompt; on V2 also of a request that goes on "
        "after it was put aside, under its old id.",
        "v1/core/sched/output.py",
        lambda vllm: _has_fields(vllm.new_request, "req_id", "prompt_token_ids"),
    ),
    Assumption(
        "Scheduler.get_request_counts returns (running, waiting).",
        "v1/core/sched/scheduler.py",
        lambda vllm: callable(getattr(vllm.scheduler, "get_request_counts", None)),
    ),
    Assumption(
        "A step with skip_drafts makes no drafts on V2 (0.33): no request can use them.",
        "v1/core/sched/scheduler.py, v1/worker/gpu/model_runner.py",
    ),
    Assumption(
        "V2 takes num_spec_tokens_to_schedule as the step's K and captures full graphs for exactly "
        "the K values of the start schedule; another K runs, but without its graph.",
        "v1/worker/gpu/model_runner.py, v1/worker/gpu/cudagraph_utils.py",
    ),
    Assumption(
        "V2 with pipeline parallelism schedules a request again exactly as many steps later as "
        "there are stages.",
        "v1/core/sched/async_scheduler.py",
    ),
    Assumption(
        "With data parallelism the start schedule is dropped (ranks that differ in K deadlock).",
        "config/vllm.py",
    ),
    Assumption(
        "EngineCore.__init__ loads the general plugins before it makes its scheduler; the API "
        "process loads them when its argument parser is made, a worker before its model.",
        "v1/engine/core.py, engine/arg_utils.py, v1/worker/worker_base.py",
    ),
    Assumption(
        "A dying engine core and a worker that cannot start log one of FATAL_MESSAGES with the "
        "exception; multiprocessing swallows it afterwards, so sys.excepthook never sees it.",
        "v1/engine/core.py, v1/executor/multiproc_executor.py",
    ),
)  # fmt: skip

FATAL_LOGGERS = ("vllm.v1.engine.core", "vllm.v1.executor.multiproc_executor")
FATAL_MESSAGES = frozenset({
    "EngineCore failed to start.",
    "EngineCore encountered a fatal error.",
    "WorkerProc failed to start.",
})  # fmt: skip


def version_problem(version: str) -> str:
    """Why this vLLM is left alone, or an empty text."""
    if version.partition("+")[0] in VERSIONS:
        return ""
    return f"vLLM {version} is not one of {', '.join(VERSIONS)}, for which the plugin was written"


def first_broken(internals: Internals) -> str:
    """The first fact that does not hold, or an empty text. Never raises."""
    for assumption in ASSUMPTIONS:
        try:
            holds = assumption.holds is None or assumption.holds(internals)
        except Exception:
            holds = False
        if not holds:
            return f"vLLM is not as expected in {assumption.where}: {assumption.fact}"
    return ""
