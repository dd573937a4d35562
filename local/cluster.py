"""A Kubernetes of one's own: `python -m local.cluster COMMAND`.

up              start it, or do nothing when it runs
down            end it and delete its state
status          what runs
enter -- CMD…   run a command inside its network, with its kubeconfig
kubectl ARG…    the same, for kubectl
kubeconfig      print the path of the administrator's kubeconfig
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from local import binaries, cgroups, images, kubectl, machine, state_files
from local.addresses import NODE_NAME
from local.layout import KUBECONFIG, LOGS
from local.locks import alone
from local.machine import Machine, NotRunningError
from local.paths import LOCAL, STATE
from local.prerequisites import PrerequisiteError, check
from local.readiness import StartError, gpus, is_ready, wait_until_usable
from local.waiting import WaitedTooLongError, say


def up() -> Machine:
    """Starts what does not run yet and returns once a pod with a GPU could start."""
    check()
    programs = binaries.build()
    pause = images.build([images.PAUSE])[images.PAUSE]
    with alone(LOCAL):
        started = time.monotonic()
        node = machine.find()
        if node is None:
            cgroups.remove()
            state_files.write(pause)
            node = machine.start(programs)
        wait_until_usable(node, lambda: images.load([pause]))
    say(f"the cluster is up after {time.monotonic() - started:.0f} s")
    return node


def down() -> None:
    """Ends the cluster and deletes its state. Nothing of it stays on the machine."""
    with alone(LOCAL):
        node = machine.find()
        if node is not None:
            machine.stop(node)
        cgroups.remove()
        machine.remove_state(STATE)
    say("the cluster is down")


def status() -> int:
    """Prints what runs; the exit code is 1 when the cluster is down or not usable."""
    node = machine.require()
    for name, pid in sorted(node.programs().items()):
        print(f"{name:<26}{pid}")
    ready = is_ready(node)
    print(f"{NODE_NAME:<26}{'Ready' if ready else 'NotReady'}")
    print(f"{'amd.com/gpu allocatable':<26}{gpus(node)}")
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
    except (PrerequisiteError, NotRunningError, StartError, WaitedTooLongError) as error:
        sys.exit(str(error))
