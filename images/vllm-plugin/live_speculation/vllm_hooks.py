"""The only module that touches vLLM: puts `LiveSpeculation` into the engine core.

`Scheduler.__init__` is wrapped once a process; each scheduler then gets its own wrapped `schedule`
and `update_from_output`, so a subclass and asynchronous scheduling need nothing special. Whatever
goes wrong inside a hook is reported on the page and never reaches vLLM. What is used of vLLM is
listed in `assumptions`.
"""

from __future__ import annotations

import functools
import logging
import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from live_speculation.assumptions import (
    LIVE_ON_V1,
    V1,
    V2,
    CoreOutputs,
    Internals,
    Scheduler,
    SchedulerOutput,
)
from live_speculation.ledger import NO_DRAFTS, Outcome, Step
from live_speculation.live import Engine, LiveSpeculation

log = logging.getLogger("vllm.live_speculation")

IN_FLIGHT = 64
"""Steps remembered until their output comes: far more than vLLM ever has under way."""

Serve = Callable[[LiveSpeculation], None]


def vllm_version() -> str:
    """As vLLM itself says it."""
    return str(import_module("vllm.version").__version__)


def inside_engine_core() -> bool:
    """Whether the caller is called, however indirectly, by the engine core's start."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        if frame.f_globals.get("__name__") == "vllm.v1.engine.core":
            return True
    return False


def internals() -> Internals:
    """Raises ImportError or AttributeError where vLLM is not as expected."""
    engine = import_module("vllm.v1.engine")
    output = import_module("vllm.v1.core.sched.output")
    return Internals(
        scheduler=import_module("vllm.v1.core.sched.scheduler").Scheduler,
        scheduler_output=output.SchedulerOutput,
        new_request=output.NewRequestData,
        spec_decoding_stats=import_module("vllm.v1.spec_decode.metrics").SpecDecodingStats,
        scheduler_stats=import_module("vllm.v1.metrics.stats").SchedulerStats,
        core_outputs=engine.EngineCoreOutputs,
        core_output=engine.EngineCoreOutput,
    )


def install(scheduler_class: type[Any], version: str, serve: Serve) -> None:
    """From now on every scheduler of this process is measured and, if it can be, tuned.

    `serve` is called once for each, with its live speculation: it reads the schedule and opens the
    pages.
    """
    original = scheduler_class.__init__
    if hasattr(original, "live_speculation"):
        return

    @functools.wraps(original)
    def init(self: Scheduler, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        try:
            live = LiveSpeculation(describe(self, version), load=self.get_request_counts)
            hook(self, live)
            serve(live)
        except Exception:
            log.exception("this engine is neither measured nor tuned")

    init.live_speculation = True  # type: ignore[attr-defined]
    scheduler_class.__init__ = init


def describe(scheduler: Scheduler, version: str) -> Engine:
    """What this engine is and whether its K can be changed while it serves."""
    config = scheduler.vllm_config
    speculation = config.speculative_config
    lookup = scheduler.dynamic_sd_lookup
    runner = V2 if scheduler.use_v2_model_runner else V1
    capacity = int(scheduler.num_spec_tokens) if speculation is not None else 0
    method = str(speculation.method) if speculation is not None else "none"
    reason = _why_not(scheduler, method, runner)
    graphs_for = lookup[1:] if lookup and runner == V2 else range(capacity + 1)
    return Engine(
        vllm=version,
        runner=runner,
        method=method,
        capacity=capacity,
        max_batch=len(lookup) - 1 if lookup else int(config.scheduler_config.max_num_seqs),
        lengths=frozenset(graphs_for),
        stages=int(config.parallel_config.pipeline_parallel_size),
        tunable=not reason,
        reason=reason,
    )


def _why_not(scheduler: Scheduler, method: str, runner: str) -> str:
    """The first reason, most telling first, why K cannot be changed live."""
    parallel = scheduler.vllm_config.parallel_config
    name = multiprocessing.current_process().name
    if method == "none":
        return "started without speculative decoding"
    if parallel.data_parallel_size > 1 or name.startswith("EngineCore_DP"):
        return (
            "data parallelism: ranks with different K would wait for each other for ever, and "
            "this page is of one rank only"
        )
    if runner == V1 and method not in LIVE_ON_V1:
        return f"Model Runner V1 cannot change K with method {method}"
    if scheduler.dynamic_sd_lookup is None:
        return "started without num_speculative_tokens_per_batch_size"
    if not scheduler.log_stats:
        return "started with --disable-log-stats: accepted tokens cannot be counted"
    return ""


def hook(scheduler: Scheduler, live: LiveSpeculation) -> None:
    """Wraps the scheduler's two methods of every step."""
    schedule, update, clock = scheduler.schedule, scheduler.update_from_output, live.clock
    under_way: deque[tuple[SchedulerOutput, Step | None]] = deque(maxlen=IN_FLIGHT)
    failed = functools.partial(_failed, live)

    @functools.wraps(schedule)
    def scheduling(*args: object, **kwargs: object) -> SchedulerOutput:
        try:
            lookup = live.table(clock())
            if lookup is not None:
                scheduler.dynamic_sd_lookup = lookup
        except Exception as error:
            failed("before a step", error)
        output = schedule(*args, **kwargs)
        try:
            under_way.append((output, _scheduled(live, output)))
        except Exception as error:
            failed("after scheduling", error)
        return output

    @functools.wraps(update)
    def updating(
        scheduler_output: SchedulerOutput, model_runner_output: object
    ) -> Mapping[int, CoreOutputs]:
        now = clock()
        result = update(scheduler_output, model_runner_output)
        try:
            while under_way:
                output, step = under_way.popleft()
                if output is scheduler_output:
                    generated, outcome = _outcome(result)
                    live.finished(step, now, generated, outcome, more=bool(scheduler.running))
                    break
        except Exception as error:
            failed("after a step", error)
        return result

    scheduler.schedule, scheduler.update_from_output = scheduling, updating


def _scheduled(live: LiveSpeculation, output: SchedulerOutput) -> Step | None:
    batch = len(output.num_scheduled_tokens)
    if not batch:
        return None
    for request in output.scheduled_new_reqs:
        live.prompts.see(request.req_id, request.prompt_token_ids)
    return live.scheduled(
        batch,
        output.num_spec_tokens_to_schedule,
        mixed=_has_prompt_tokens(output, batch, live.asked),
        timed=not getattr(output, "skip_drafts", False),
    )


def _has_prompt_tokens(output: SchedulerOutput, batch: int, asked: int) -> bool:
    if output.scheduled_new_reqs:
        return True
    total = output.total_num_scheduled_tokens
    if total == batch * (1 + asked):
        return False
    return bool(total > batch + sum(map(len, output.scheduled_spec_decode_tokens.values())))


def _outcome(result: Mapping[int, CoreOutputs]) -> tuple[int, Outcome]:
    """Tokens given out and what the drafts brought, from the outputs by client."""
    generated, outcome = 0, NO_DRAFTS
    for outputs in result.values():
        generated += sum([len(output.new_token_ids) for output in outputs.outputs])
        stats = outputs.scheduler_stats
        if stats is not None and stats.spec_decoding_stats is not None:
            drafts = stats.spec_decoding_stats
            outcome = Outcome(
                drafts.num_drafts,
                drafts.num_draft_tokens,
                drafts.num_accepted_tokens,
                drafts.num_draft_tokens_per_pos,
                drafts.num_accepted_tokens_per_pos,
            )
    return generated, outcome


def _failed(live: LiveSpeculation, where: str, error: Exception) -> None:
    """Says it on the page, and once in the log. Nothing that happens here may get out either."""
    try:
        if not live.fault:
            log.exception("live speculation failed %s; the server goes on", where)
        live.break_off(f"{where}: {type(error).__name__}: {error}")
    except Exception:  # noqa: S110 - there is nobody left to tell
        pass
