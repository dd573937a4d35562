"""Waiting for a condition, and saying what is waited for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class WaitedTooLongError(RuntimeError):
    """The condition did not become true within its limit."""


def say(message: str) -> None:
    """Progress goes to standard error; standard output is for what was asked for."""
    print(message, file=sys.stderr, flush=True)


def wait_for(
    what: str, condition: Callable[[], bool], *, limit: float, interval: float = 0.2
) -> None:
    """Returns once `condition()` is true; names `what` when that takes more than a second.

    Raises `WaitedTooLongError` after `limit` seconds.
    """
    started = time.monotonic()
    told = False
    while not condition():
        waited = time.monotonic() - started
        if waited > limit:
            raise WaitedTooLongError(f"{what}: not so after {limit:.0f} s")
        if waited > 1 and not told:
            say(f"waiting for {what}")
            told = True
        time.sleep(interval)
