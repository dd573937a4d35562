"""kubectl against the local cluster, from outside its network."""

from __future__ import annotations

import subprocess

from local import binaries
from local.kubeconfig import CONTEXT
from local.layout import KUBECONFIG
from local.machine import Machine


class KubectlError(RuntimeError):
    """kubectl said no; the message is what it said."""


def command(machine: Machine, *arguments: str) -> list[str]:
    """The argv of one kubectl call as the cluster's administrator."""
    kubectl = str(binaries.folder() / "kubectl")
    chosen = (f"--kubeconfig={KUBECONFIG}", f"--context={CONTEXT}")
    return machine.inside_network(kubectl, *chosen, *arguments)


def run(machine: Machine, *arguments: str, stdin: str | None = None) -> str:
    """The output of one kubectl call. Raises `KubectlError`."""
    done = subprocess.run(
        command(machine, *arguments), input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
