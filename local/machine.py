"""The cluster seen from outside its namespaces: find it, start it, enter it, stop it.

The whole cluster hangs on one process, the supervisor, which is the first of a process namespace.
Killing it ends everything.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.layout import KUBECONFIG, LOGS, MACHINE
from local.paths import CHECKOUT, LOCAL
from local.waiting import wait_for

PROGRAMS = LOCAL / "bin"
"""What kubectl of this checkout finds as its plugins."""

UNSHARE = (
    "unshare", "--net", "--mount", "--propagation", "private",
    "--pid", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip


class NotRunningError(RuntimeError):
    """There is no local cluster of this checkout."""

    def __init__(self) -> None:
        super().__init__("the local cluster is down: start it with: make cluster")


@dataclass(frozen=True)
class Machine:
    """The supervisor's process, told from a later process of the same number by its start time."""

    pid: int
    started: int  # clock ticks after boot

    @property
    def alive(self) -> bool:
        return _started(self.pid) == self.started

    def inside_network(self, *command: str) -> list[str]:
        """`command` as an argv that runs in the cluster's network, with the machine's files."""
        return ["nsenter", f"--target={self.pid}", "--net", "--", *command]

    def inside(self, *command: str) -> list[str]:
        """`command` as an argv that runs as a process of the node: its files, and its end."""
        spaces = ("--net", "--mount", "--pid")
        return ["nsenter", f"--target={self.pid}", *spaces, "--", *command]

    def programs(self) -> Mapping[str, int]:
        """Name and pid of each running child of the supervisor."""
        return {_command(pid): pid for pid in _children(self.pid)}


def find() -> Machine | None:
    """The running machine of this checkout."""
    if not MACHINE.exists():
        return None
    machine = Machine(**json.loads(MACHINE.read_text()))
    return machine if machine.alive else None


def require() -> Machine:
    """As `find`; raises `NotRunningError`."""
    machine = find()
    if machine is None:
        raise NotRunningError
    return machine


def start(binaries: Path) -> Machine:
    """Starts the supervisor in namespaces of its own; it outlives the caller."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / "supervisor.log").open("ab") as log:
        unshare = subprocess.Popen(
            [*UNSHARE, sys.executable, "-m", "local.supervisor", str(binaries)],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    wait_for("the namespaces", lambda: bool(_children(unshare.pid)), limit=10, interval=0.02)
    pid = _children(unshare.pid)[0]
    machine = Machine(pid, _started(pid) or 0)
    MACHINE.write_text(json.dumps({"pid": machine.pid, "started": machine.started}))
    return machine


def stop(machine: Machine) -> None:
    """Kills the supervisor and with it every process, mount and address of the cluster."""
    os.kill(machine.pid, signal.SIGKILL)
    wait_for("all processes to end", lambda: not machine.alive, limit=30, interval=0.05)


def environment(binaries: Path) -> dict[str, str]:
    """The caller's environment with this cluster's kubectl, its plugin, helm and kubeconfig."""
    folders = (str(PROGRAMS), str(binaries), os.environ.get("PATH", os.defpath))
    return {**os.environ, "KUBECONFIG": str(KUBECONFIG), "PATH": os.pathsep.join(folders)}


def in_its_network(machine: Machine) -> bool:
    """Whether the calling process is already inside the cluster's network namespace."""
    return Path("/proc/self/ns/net").readlink() == Path(f"/proc/{machine.pid}/ns/net").readlink()


def _children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except FileNotFoundError:
        return []


def _command(pid: int) -> str:
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return ""
    words = [word.decode() for word in argv if word]
    if words[1:2] == ["-m"]:
        return words[2].removeprefix("local.").replace("_", "-")
    return Path(words[0]).name if words else ""


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks after boot; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def remove_state(state: Path) -> None:
    """Deletes what the cluster wrote; the folder itself may be a mount or have other owners."""
    for entry in state.iterdir() if state.exists() else ():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
