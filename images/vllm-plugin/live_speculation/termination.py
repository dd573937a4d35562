"""Writes the first fatal exception of a vLLM server to the container's termination log.

vLLM's last log lines only point further up, and a server whose engine core died exits with 0. The
kubelet shows this file as the container's termination message (at most 4 KiB). All processes of the
server share it; the first one writes, the others find it taken.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from collections.abc import Collection, Iterable
from multiprocessing import current_process
from pathlib import Path
from types import TracebackType

DEFAULT_PATH = Path("/dev/termination-log")
MAX_BYTES = 3 * 1024
MAX_MESSAGE = 2 * 1024
OWN_PACKAGES = ("vllm", "live_speculation")
DRAFT_PACKAGE = "spec_decode"


def describe(error: BaseException) -> str:
    """Process, type and message, the last frame in vLLM's own code, and the last one in its code
    for drafts, if that is another; at most MAX_BYTES."""
    message = str(error)
    if len(message) > MAX_MESSAGE:
        message = message[:MAX_MESSAGE] + " ..."
    name = type(error).__qualname__
    lines = [f"{current_process().name}: {name}: {message}"]
    frame, draft = _last_frames(error.__traceback__)
    if frame is not None:
        lines.append(f"at {frame}")
    if draft is not None and draft != frame:
        lines.append(f"called by {draft}")
    if error.__cause__ is not None:
        cause = str(error.__cause__)[:512]
        lines.append(f"caused by {type(error.__cause__).__qualname__}: {cause}")
    return "\n".join(lines).encode(errors="replace")[:MAX_BYTES].decode(errors="ignore")


def write_first(path: Path, text: str) -> bool:
    """Writes `text` if the file exists and is still empty. Tells whether it did."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_size:
            return False
        os.write(descriptor, text.encode())
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def watch(path: Path, loggers: Iterable[str], messages: Collection[str]) -> None:
    """From now on uncaught exceptions of this process, and those that one of `loggers` reports
    with one of `messages`, go to `path`."""
    for name in loggers:
        logger = logging.getLogger(name)
        if not any(isinstance(one, _FatalRecords) for one in logger.filters):
            logger.addFilter(_FatalRecords(path, messages))
    if not getattr(sys.excepthook, "writes_termination_log", False):
        sys.excepthook = _WritingHook(path)


class _FatalRecords(logging.Filter):
    """Lets every record pass. A filter and no handler: vLLM configures logging anew in its child
    processes, which takes handlers away and leaves filters."""

    def __init__(self, path: Path, messages: Collection[str]) -> None:
        super().__init__()
        self._path = path
        self._messages = messages

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and record.msg in self._messages:
            _write(self._path, error)
        return True


class _WritingHook:
    """Stands in for sys.excepthook and calls the one that was there."""

    writes_termination_log = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = sys.excepthook

    def __call__(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            _write(self._path, error)
        self._before(kind, error, trace)


def _write(path: Path, error: BaseException) -> None:
    """Whatever is wrong with the exception itself must not hide it from the log."""
    try:
        write_first(path, describe(error))
    except Exception as problem:
        logging.getLogger("vllm.live_speculation").warning("termination log: %r", problem)


def _last_frames(trace: TracebackType | None) -> tuple[str | None, str | None]:
    """The innermost frame of vLLM's own code, else the innermost of all, and the innermost one of
    its code for drafts, as `file:line in name`."""
    own = last = draft = None
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "?"))
        file = module.replace(".", "/") + ".py"
        last = f"{file}:{trace.tb_lineno} in {trace.tb_frame.f_code.co_name}"
        if module.partition(".")[0] in OWN_PACKAGES:
            own = last
            draft = last if DRAFT_PACKAGE in module.split(".") else draft
        trace = trace.tb_next
    return own or last, draft
