"""Nodes that run nothing, by kwok: for hundreds of models, not for serving."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator

from local import binaries, kubectl, machine
from local.addresses import NODE_NAME
from local.layout import KUBECONFIG, LOGS
from local.node_labels import amd_labels
from local.paths import LOCAL
from local.waiting import wait_for

ANNOTATION = "kwok.x-k8s.io/node"
LABEL = "speculation.dev/simulated-node"
STAGES = LOCAL / "manifests" / "kwok.yaml"
GPUS = 8
PODS = 110
ADDRESSES = "10.99.0.0/16"
"""Of the pods. All are made local: whoever listens on them stands in for what pods serve."""


LEASE_SECONDS = 40
"""As a kubelet's. Without a Lease a node, and with it its pods, would be unready after a minute."""


def _node(number: int, gpus: int) -> dict[str, object]:
    room = {"cpu": "64", "memory": "1Ti", "pods": str(PODS), "amd.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"kwok-{number}",
            "annotations": {ANNOTATION: "fake"},
            "labels": {LABEL: "true", **amd_labels(gpus)},
        },
        "status": {"capacity": room, "allocatable": room},
    }


@contextlib.contextmanager
def simulated_nodes(count: int, gpus: int = GPUS) -> Iterator[None]:
    """`count` nodes of `gpus` GPUs each, whose pods become Ready at once; the real node rests.

    Pods made meanwhile run on them. All of it is taken away at the end.
    """
    node = machine.require()
    with (LOGS / "kwok.log").open("ab") as log:
        kwok = subprocess.Popen(
            node.inside(
                *("setpriv", "--pdeathsig=TERM"),  # nsenter passes no signal on, so its end is one
                str(binaries.folder() / "kwok"),
                f"--kubeconfig={KUBECONFIG}",
                "--manage-all-nodes=false",
                f"--manage-nodes-with-annotation-selector={ANNOTATION}=fake",
                f"--cidr={ADDRESSES}",
                f"--node-lease-duration-seconds={LEASE_SECONDS}",
                f"--config={STAGES}",
            ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    route = ("ip", "route", "replace", "local", ADDRESSES, "dev", "lo")
    try:
        subprocess.run(node.inside_network(*route), check=True)
        kubectl.run(node, "cordon", NODE_NAME)
        objects = {
            "apiVersion": "v1",
            "kind": "List",
            "items": [_node(n, gpus) for n in range(count)],
        }
        kubectl.run(node, "apply", "--server-side", "--filename=-", stdin=json.dumps(objects))
        wait_for(f"{count} simulated nodes", lambda: _ready(node) == count, limit=120)
        yield
    finally:
        kubectl.run(node, "delete", "nodes", f"--selector={LABEL}", "--ignore-not-found")
        kubectl.run(node, "uncordon", NODE_NAME)
        kwok.terminate()
        kwok.wait()


def _ready(node: machine.Machine) -> int:
    path = "{.items[*].status.conditions[?(@.type=='Ready')].status}"
    answer = kubectl.run(node, "get", "nodes", f"--selector={LABEL}", f"--output=jsonpath={path}")
    return answer.split().count("True")
