"""One process at a time, also across checkouts: caches are shared."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from local.waiting import say


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds an exclusive lock on `folder`, made when missing; the lock ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that works on {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
