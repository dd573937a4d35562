"""An operator that is started again whenever it ends, as a kubelet does it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.support.api import until
from tests.support.gate import Gate, Write
from tests.support.operator_process import LEADS, OperatorProcess

NURSERY = """
import os, sys
from speculative_operator import main
for _ in sys.stdin:
    child = os.fork()
    if not child:
        main.main()
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""
"""Has imported all of the operator once; each line that it reads is one operator, until its end. So
a new one costs no second of imports, which kills at each step would pay each time."""

START_AGAIN_AFTER = 0.2
"""Seconds: a kubelet's back-off would only make the test longer."""

NO_STEP = frozenset({"leases", "events"})
"""Writes without which an operator cannot even begin, or that decide nothing."""


@dataclass
class KeptOperator:
    """`process` says how it is started: always as the same pod, so that it has the Lease at once.
    `ends` counts how often it has ended so far, `killed` how often by us."""

    process: OperatorProcess
    gate: Gate
    ends: int = 0
    killed: int = 0
    _pid: int | None = None
    _said: int = 0
    _wanted: threading.Event = field(default_factory=threading.Event)
    _may_start: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[KeptOperator]:
        """Until the body is left."""
        self._wanted.set()
        self._may_start.set()
        with (
            self._log.open("wb") as log,
            subprocess.Popen(
                [sys.executable, "-c", NURSERY, *self.process.arguments()],
                env=self.process.environment(self.process.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            ) as nursery,
        ):
            assert nursery.stdin is not None
            assert nursery.stdout is not None
            thread = threading.Thread(target=self._keep, args=(nursery.stdin, nursery.stdout))
            thread.start()
            try:
                yield self
            finally:
                self._wanted.clear()
                self._signal(signal.SIGTERM)
                thread.join()

    def kill(self) -> None:
        """As a machine dies."""
        self.killed += 1
        self._signal(signal.SIGKILL)

    def kill_and_wait(self) -> None:
        """Returns once the next one leads."""
        with self.away():
            pass

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Killed, and no other runs before the body is left; then returns once that one leads."""
        self._may_start.clear()
        try:
            ended = self.ends
            self.kill()
            until("the operator has ended", lambda: self.ends > ended)
            yield
        finally:
            self._may_start.set()
        until("the next operator leads", self._leads)

    @contextlib.contextmanager
    def dying_after_each_write(self) -> Iterator[None]:
        """Killed before it hears that a write was done, so each step begins with a new process."""

        def kill(write: Write) -> None:
            if write.resource not in NO_STEP:
                self.kill()

        self.gate.on_write = kill
        try:
            yield
        finally:
            self.gate.on_write = lambda _: None

    @property
    def _log(self) -> Path:
        return self.process.folder / "operator.log"

    def _leads(self) -> bool:
        return self._pid is not None and LEADS in self._log.read_text()[self._said :]

    def _keep(self, orders: IO[str], births: IO[str]) -> None:
        while self._wanted.is_set():
            self._said = len(self._log.read_text())
            orders.write("another\n")
            orders.flush()
            self._pid = int(births.readline())
            births.readline()
            self._pid = None
            self.ends += 1
            time.sleep(START_AGAIN_AFTER)
            self._may_start.wait()
        orders.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._pid is not None:
                os.kill(self._pid, number)
