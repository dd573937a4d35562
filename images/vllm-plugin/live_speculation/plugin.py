"""The entry point in the group `vllm.general_plugins`: called in every process of a vLLM server."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from live_speculation import reading, serving, termination, vllm_hooks
from live_speculation.assumptions import (
    FATAL_LOGGERS,
    FATAL_MESSAGES,
    first_broken,
    version_problem,
)
from live_speculation.live import Engine, LiveSpeculation

log = logging.getLogger("vllm.live_speculation")

SCHEDULE = "SPECULATION_SCHEDULE"
PORT = "SPECULATION_PORT"
TERMINATION_LOG = "SPECULATION_TERMINATION_LOG"


def register() -> None:
    """Never raises, whatever vLLM this is."""
    try:
        _register()
    except Exception:
        log.exception("live speculation is off in this process")


def _register() -> None:
    termination_log = Path(os.environ.get(TERMINATION_LOG) or termination.DEFAULT_PATH)
    termination.watch(termination_log, FATAL_LOGGERS, FATAL_MESSAGES)
    version = vllm_hooks.vllm_version()
    problem = version_problem(version)
    if not problem:
        try:
            internals = vllm_hooks.internals()
            problem = first_broken(internals)
        except (ImportError, AttributeError) as error:
            problem = f"vLLM is not as expected: {error}"
    if not problem:
        vllm_hooks.install(internals.scheduler, version, _serve)
    elif vllm_hooks.inside_engine_core():
        engine = Engine(vllm=version, tunable=False, reason=problem, measured=False)
        _serve(LiveSpeculation(engine))


def _serve(live: LiveSpeculation) -> None:
    """Reads the schedule and opens the pages. A taken port costs the pages, not the engine."""
    path = Path(os.environ.get(SCHEDULE) or reading.DEFAULT_PATH)
    reading.read_in_background(reading.ScheduleReader(path, live))
    port = int(os.environ.get(PORT) or serving.DEFAULT_PORT)
    try:
        serving.PageServer(live, port).start()
    except OSError as error:
        log.warning("port %d: %s; live speculation runs without its pages", port, error.strerror)
    if not live.engine.tunable:
        log.warning("the proposal length cannot be changed live: %s", live.engine.reason)
