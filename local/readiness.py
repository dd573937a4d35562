"""When the local cluster is usable: a pod with a GPU could start and find its Services by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from local import binaries, devices, kubectl, node_images
from local.addresses import DNS_READINESS, NODE_NAME
from local.layout import LOGS
from local.machine import Machine
from local.paths import LOCAL
from local.waiting import wait_for

DNS_OBJECTS = f"--filename={LOCAL / 'manifests' / 'dns.yaml'}"
LIMIT = 180.0  # seconds for each step, on two busy cores


class StartError(RuntimeError):
    """The cluster ended while it was waited for."""


def wait_until_usable(node: Machine, bring_pause_image: Callable[[], None]) -> None:
    """Waits part by part, saying which. Raises `StartError` or `WaitedTooLongError`."""

    def wait(what: str, condition: Callable[[], bool]) -> None:
        def alive_and_so() -> bool:
            if not node.alive:
                log = (LOGS / "supervisor.log").read_text()
                raise StartError(f"the cluster ended while it started:\n{log[-2000:]}")
            return condition()

        wait_for(what, alive_and_so, limit=LIMIT)

    programs = binaries.folder()
    wait("containerd", lambda: node_images.answers(node, programs))
    bring_pause_image()
    wait("the API server", lambda: _succeeds(node, "get", "--raw", "/readyz"))
    wait("cluster DNS's objects", lambda: _succeeds(node, "apply", "--server-side", DNS_OBJECTS))
    wait("the node to be Ready", lambda: is_ready(node))
    wait("the node's GPUs", lambda: gpus(node) == str(_healthy_devices()))
    wait("cluster DNS", lambda: _dns_answers(node))
    wait("service accounts", lambda: _succeeds(node, "get", "serviceaccount", "default"))


def is_ready(node: Machine) -> bool:
    """Whether the node itself is Ready."""
    return _node_field(node, "{.status.conditions[?(@.type=='Ready')].status}") == "True"


def gpus(node: Machine) -> str:
    """The node's allocatable GPUs as Kubernetes writes them; empty while there are none."""
    return _node_field(node, r"{.status.allocatable.amd\.com/gpu}")


def _healthy_devices() -> int:
    wanted = devices.read()
    return len(set(wanted.ids) - wanted.unhealthy)


def _succeeds(node: Machine, *arguments: str) -> bool:
    try:
        kubectl.run(node, *arguments)
    except kubectl.KubectlError:
        return False
    return True


def _node_field(node: Machine, path: str) -> str:
    try:
        return kubectl.run(node, "get", "node", NODE_NAME, f"--output=jsonpath={path}")
    except kubectl.KubectlError:
        return ""


def _dns_answers(node: Machine) -> bool:
    program = f"import urllib.request as u; u.urlopen('http://{DNS_READINESS}/ready', timeout=2)"
    command = node.inside_network(sys.executable, "-c", program)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
