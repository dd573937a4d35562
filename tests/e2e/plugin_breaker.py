"""A vLLM plugin that breaks things on request, inside the server under test.

It is copied next to the real plugin. A file in the folder `PLUGIN_BREAKER` is the request:
`die`: the engine core raises in a step. `unhook`: the scheduler loses its hooks, as if another
vLLM no longer called them. `raise`: the hook before a step raises from then on.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = "PLUGIN_BREAKER"
DEATH = "broken on purpose"


def register() -> None:
    """The entry point: called in every process of the server."""
    requests = Path(os.environ[FOLDER])
    scheduler = import_module("vllm.v1.core.sched.scheduler").Scheduler
    live = import_module("live_speculation.live").LiveSpeculation
    scheduler.schedule = _raising(requests / "die", RuntimeError(DEATH), scheduler.schedule)
    live.table = _raising(requests / "raise", KeyError("hook broken on purpose"), live.table)
    init = scheduler.__init__

    @functools.wraps(init)
    def watched(self: object, *args: object, **kwargs: object) -> None:
        init(self, *args, **kwargs)
        threading.Thread(target=_unhook_when_asked, args=(self, requests), daemon=True).start()

    scheduler.__init__ = watched


def _raising(path: Path, error: Exception, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, until there is a file at `path`."""

    @functools.wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        if path.exists():
            raise error
        return method(*args, **kwargs)

    return call


def _unhook_when_asked(scheduler: object, requests: Path) -> None:
    while not (requests / "unhook").exists():
        time.sleep(0.1)
    for hook in ("schedule", "update_from_output"):
        delattr(scheduler, hook)
