"""A cgroup namespace for the cluster: its processes and pods lie in one folder of this machine's.

So two clusters never meet in containerd's fixed folder `k8s.io`, and all is found again at the end.
Works with cgroup v1 (a folder in each hierarchy) and v2 (one folder).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local.layout import NAME
from local.waiting import wait_for

MOUNTS = Path("/proc/self/mountinfo")
NEW_CGROUP_NAMESPACE = 0x02000000  # CLONE_NEWCGROUP
# In v1 the whole cluster would weigh as much as one process outside of it: starved by a build.
SHARES = 16 * 1024
# v2 gives controllers only to folders below one without processes, so ours sit in a leaf.
LEAF = "programs"


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup file system, with the options that mount it again."""

    mount: Path
    kind: str  # cgroup or cgroup2
    options: str


def hierarchies(mountinfo: str) -> Iterator[Hierarchy]:
    """The cgroup file systems in the text of a `mountinfo` file."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            wanted = ",".join(o for o in options.split(",") if o not in {"rw", "ro"})
            yield Hierarchy(Path(before.split()[4]), kind, wanted)


def enter() -> None:
    """Moves this process into the cluster's folder and makes that the root of what it sees."""
    found = tuple(hierarchies(MOUNTS.read_text()))
    for hierarchy in found:
        if hierarchy.kind == "cgroup2":
            _delegate(hierarchy.mount)
        _join(hierarchy.mount / NAME)
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_CGROUP_NAMESPACE):
        raise OSError(ctypes.get_errno(), "no cgroup namespace: the kernel needs CONFIG_CGROUPS")
    for hierarchy in found:
        options = ("-o", hierarchy.options) if hierarchy.kind == "cgroup" else ()
        # The kernel refuses a file system over itself, so the machine's view makes room for ours;
        # lazily, since whoever looks into this process's files for a moment keeps it busy.
        subprocess.run(["umount", "--lazy", hierarchy.mount], check=True)
        subprocess.run(
            ["mount", "-t", hierarchy.kind, *options, "cgroup", hierarchy.mount], check=True
        )
        _join(hierarchy.mount / LEAF)


def _delegate(folder: Path) -> None:
    """Lets the folders below use every controller, as systemd does for those of its own."""
    controllers = (folder / "cgroup.controllers").read_text().split()
    wanted = " ".join(f"+{controller}" for controller in controllers)
    (folder / "cgroup.subtree_control").write_text(wanted)


def _join(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("cpuset.cpus", "cpuset.mems"):  # empty at first in v1, and nobody can join then
        file = folder / name
        if file.exists() and not file.read_text().strip():
            file.write_text((folder.parent / name).read_text())
    shares = folder / "cpu.shares"
    if folder.name == NAME and shares.exists():
        shares.write_text(str(SHARES))
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def remove() -> None:
    """Removes the cluster's folders, which the kernel keeps when their processes have ended."""
    for hierarchy in hierarchies(MOUNTS.read_text()):
        for folder, _, _ in os.walk(hierarchy.mount / NAME, topdown=False):
            _remove(Path(folder))


def _remove(folder: Path) -> None:
    def gone() -> bool:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:  # its last process is still ending
            return False
        return True

    wait_for(f"{folder} to empty", gone, limit=10)
