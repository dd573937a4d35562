"""A Kubernetes of one's own: `python -m local.cluster COMMAND`.

up              start it, or do nothing when it runs
down            end it and delete its state
status          what runs
enter -- CMD…   run a command inside its network, with its kubeconfig
kubectl ARG…    the same, for kubectl
kubeconfig      print the path of the administrator's kubeconfig
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from local import binaries, devices, images, kubectl, machine, node_images, state_files
from local.addresses import DNS_READINESS, NODE_NAME
from local.layout import KUBECONFIG, LOGS
from local.machine import Machine, NotRunningError
from local.paths import LOCAL, STATE
from local.prerequisites import PrerequisiteError, check
from local.waiting import WaitedTooLongError, say, wait_for

DNS_OBJECTS = LOCAL / "manifests" / "dns.yaml"
ALLOCATABLE_GPUS = r"{.status.allocatable.amd\.com/gpu}"
START_LIMIT = 120.0  # seconds for each step of the start, on two busy cores


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One `up` or `down` of a checkout at a time."""
    lock = os.open(LOCAL, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def up() -> Machine:
    """Starts what does not run yet and returns once a pod with a GPU could start."""
    check()
    programs = binaries.build()
    pause = images.build([images.PAUSE])[images.PAUSE]
    with _alone():
        started = time.monotonic()
        node = machine.find()
        if node is None:
            machine.remove_cgroups()
            state_files.write(pause)
            node = machine.start(programs)
        _wait_until_usable(node, pause)
    say(f"the cluster is up after {time.monotonic() - started:.0f} s")
    return node


def _wait_until_usable(node: Machine, pause: str) -> None:
    programs = binaries.folder()
    wait_for("containerd", lambda: node_images.answers(node, programs), limit=START_LIMIT)
    images.load([pause])
    wait_for("the API server", lambda: _asks(node, "get", "--raw", "/readyz"), limit=START_LIMIT)
    wait_for(
        "the objects of cluster DNS",
        lambda: _asks(node, "apply", "--server-side", f"--filename={DNS_OBJECTS}"),
        limit=START_LIMIT,
        interval=1,
    )
    wait_for("the node to be Ready", lambda: _node_is_ready(node), limit=START_LIMIT)
    wait_for("the node's GPUs", lambda: _gpus_are_offered(node), limit=START_LIMIT)
    wait_for("cluster DNS", lambda: _dns_is_ready(node), limit=START_LIMIT)
    wait_for("service accounts", lambda: _asks(node, "get", "serviceaccount", "default"), limit=60)


def _asks(node: Machine, *arguments: str) -> bool:
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


def _node_is_ready(node: Machine) -> bool:
    return _node_field(node, "{.status.conditions[?(@.type=='Ready')].status}") == "True"


def _dns_is_ready(node: Machine) -> bool:
    program = f"import urllib.request as u; u.urlopen('http://{DNS_READINESS}/ready', timeout=2)"
    command = node.inside_network(sys.executable, "-c", program)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _gpus_are_offered(node: Machine) -> bool:
    wanted = devices.read()
    healthy = len(set(wanted.ids) - wanted.unhealthy)
    return _node_field(node, ALLOCATABLE_GPUS) == str(healthy)


def down() -> None:
    """Ends the cluster and deletes its state. Nothing of it stays on the machine."""
    with _alone():
        node = machine.find()
        if node is not None:
            machine.stop(node)
        machine.remove_cgroups()
        machine.remove_state(STATE)
    say("the cluster is down")


def status() -> int:
    """Prints what runs; the exit code is 1 when the cluster is down or not usable."""
    node = machine.require()
    for name, pid in sorted(node.programs().items()):
        print(f"{name:<26}{pid}")
    ready = _node_is_ready(node)
    print(f"{NODE_NAME:<26}{'Ready' if ready else 'NotReady'}")
    print(f"{'amd.com/gpu allocatable':<26}{_node_field(node, ALLOCATABLE_GPUS)}")
    print(f"{'logs':<26}{LOGS}")
    return 0 if ready else 1


def enter(command: Sequence[str]) -> None:
    """Becomes `command`, inside the cluster's network."""
    argv = machine.require().inside_network(*command)
    os.execvpe(argv[0], argv, machine.environment(binaries.folder()))


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["up"]:
            up()
        case ["down"]:
            down()
        case ["status"]:
            return status()
        case ["enter", "--", *command] if command:
            enter(command)
        case ["kubectl", *rest]:
            argv = kubectl.command(machine.require(), *rest)
            os.execvp(argv[0], argv)
        case ["kubeconfig"]:
            print(KUBECONFIG)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (PrerequisiteError, NotRunningError, WaitedTooLongError) as error:
        sys.exit(str(error))
