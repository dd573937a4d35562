"""Reads the schedule file by its content, at most twice a second, in a thread of its own.

The thread runs also while the engine is idle; the engine loop itself reads no file.
"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

from live_speculation.live import LiveSpeculation
from live_speculation.schedule import MAX_BYTES, ScheduleRefused, parse

DEFAULT_PATH = Path("/etc/speculation/schedule.json")
INTERVAL = 0.5
"""Seconds between two looks at the file."""


class ScheduleReader:
    """Offers each new content of `path` to `live`."""

    def __init__(self, path: Path, live: LiveSpeculation) -> None:
        self._path = path
        self._live = live
        self._judged: bytes | None = None

    def poll(self) -> None:
        """Looks once. Never raises for what the file is or holds."""
        try:
            data = _content(self._path)
            if data == self._judged:
                return
            self._judged = data
            self._live.offer(parse(data, self._live.engine.lengths))
        except ScheduleRefused as refusal:
            self._live.refuse(f"{self._path}: {refusal}")
        except OSError as error:
            self._judged = None
            self._live.refuse(f"{self._path}: {error.strerror or type(error).__name__}")


def read_in_background(reader: ScheduleReader, stop: threading.Event | None = None) -> None:
    """Polls from a daemon thread until `stop` is set."""
    stopped = stop or threading.Event()

    def loop() -> None:
        reader.poll()
        while not stopped.wait(INTERVAL):
            reader.poll()

    threading.Thread(target=loop, name="speculation-schedule", daemon=True).start()


def _content(path: Path) -> bytes:
    """At most one byte more than a schedule may have. Does not wait for a pipe's other end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ScheduleRefused("not a regular file")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
