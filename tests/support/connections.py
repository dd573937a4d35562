"""To which ports a pod of the local node has connections."""

from __future__ import annotations

import subprocess

from local import binaries, machine
from tests.support.api import Manifest

METRICS_PORT = 8080
"""On which the operator is asked: those connections are others'."""


def connected_ports(pod: Manifest) -> set[int]:
    """The other ends' ports of the connections that a pod has opened; none of one that has not
    started yet, or is gone."""
    statuses = pod["status"].get("containerStatuses", ())
    wanted = {status.get("containerID", "").removeprefix("containerd://") for status in statuses}
    listing = inside(str(binaries.folder() / "ctr"), "--namespace=k8s.io", "tasks", "ls")
    tasks = (line.split()[:2] for line in listing.splitlines()[1:])
    ends = [
        tuple(int(end.rpartition(":")[2], 16) for end in line.split()[1:3])
        for task, pid in tasks
        if task in wanted
        for line in inside("cat", f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6").splitlines()
        if "local_address" not in line
    ]
    return {there for here, there in ends if there and here != METRICS_PORT}


def inside(*command: str) -> str:
    """What a program says in the node; nothing of a process that has just ended."""
    argv = machine.require().inside(*command)
    return subprocess.run(argv, check=False, capture_output=True, text=True).stdout
