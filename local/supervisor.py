"""The first process inside the cluster's namespaces: prepares the node, keeps programs running.

Started by `local.machine` under unshare, with network, mount and process namespaces of its own and
the folder of the binaries as its argument. Everything that it makes ends with it: the kernel kills
all processes of the namespace, and mounts, bridge and firewall rules go with their namespaces.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from local import cgroups
from local.addresses import BRIDGE, NODE_ADDRESS, POD_RANGE, SERVICE_RANGE
from local.layout import LOGS, VAR_LIB, VAR_LOG
from local.programs import Program, programs

RESTART_AFTER = 1.0  # seconds


def prepare_mounts() -> None:
    """Puts the state folder's /var/lib and /var/log and an empty /run over the machine's."""
    for source, target in ((VAR_LIB, "/var/lib"), (VAR_LOG, "/var/log")):
        source.mkdir(parents=True, exist_ok=True)
        _run("mount", "--bind", str(source), target)
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")


def prepare_network() -> None:
    """Loopback, the pods' bridge, and a route for Service addresses: they need one before NAT."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    prefix = POD_RANGE.split("/")[1]
    _run("ip", "address", "add", f"{NODE_ADDRESS}/{prefix}", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    _run("ip", "route", "add", SERVICE_RANGE, "dev", BRIDGE)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


class Supervisor:
    """Starts programs, starts them again when they end, and reaps every orphan."""

    def __init__(self, wanted: Sequence[Program], path: str) -> None:
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
            "PATH": path,
        }
        self._running: dict[int, Program] = {}
        self._due = [(0.0, program) for program in wanted]

    def run(self) -> None:
        """Never returns. Wakes up when a child ends or a restart is due."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        while True:
            now = time.monotonic()
            ready = [program for due, program in self._due if due <= now]
            self._due = [item for item in self._due if item[0] > now]
            for program in ready:
                self._start(program)
            pause = min((due for due, _ in self._due), default=now + 3600) - now
            signal.sigtimedwait({signal.SIGCHLD}, pause)
            self._reap()

    def _start(self, program: Program) -> None:
        # Not subprocess.Popen: its bookkeeping reaps ended children of before, and nobody would
        # start those again.
        log = str(LOGS / f"{program.name}.log")
        pid = os.posix_spawn(
            program.argv[0],
            program.argv,
            self._environment,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ),
            setsid=True,
            setsigmask=(),
        )
        self._running[pid] = program
        print(f"{program.name} started as {pid}", flush=True)

    def _reap(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            program = self._running.pop(pid, None)
            if program is not None:
                code = os.waitstatus_to_exitcode(status)
                print(f"{program.name} ended with {code}, starting again", flush=True)
                self._due.append((time.monotonic() + RESTART_AFTER, program))


def main(binaries: Path) -> None:
    cgroups.enter()
    prepare_mounts()
    prepare_network()
    Supervisor(programs(binaries), f"{binaries}:{os.environ['PATH']}").run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
