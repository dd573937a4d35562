"""Installs the operator into the local cluster by its chart, with images of this checkout.

`python -m local.install` builds and imports the images, then installs or upgrades the release and
waits until the operator is ready.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

import yaml

from local import binaries, images, kubectl, machine, node_images
from local.addresses import NODE_ADDRESS
from local.kubeconfig import CONTEXT
from local.layout import KUBECONFIG
from local.machine import Machine
from local.paths import CHECKOUT
from local.waiting import say

CHART = CHECKOUT / "charts" / "speculative-operator"
EXAMPLE = CHECKOUT / "examples" / "local-simulated.yaml"
"""Its image is there under the name that it writes."""

RELEASE = "speculative-operator"
NAMESPACE = "speculative-system"
PROMETHEUS_PORT = 9090
"""On the node's address, where a test or a user may run one."""


class InstallError(RuntimeError):
    """Helm said no; the message is what it said and what the operator's pods look like."""


def image(reference: str) -> Mapping[str, str]:
    """The chart's way to name an image."""
    repository, tag = reference.rsplit(":", 1)
    return {"repository": repository, "tag": tag}


def values(references: Mapping[str, str]) -> Mapping[str, object]:
    """The chart values that make it run the images `references` (name -> reference)."""
    return {
        "image": image(references["operator"]),
        "plugin": image(references["vllm-plugin"]),
        "engine": {"image": references["vllm-cpu"]},
        "monitoring": {"prometheus": {"url": f"http://{NODE_ADDRESS}:{PROMETHEUS_PORT}"}},
    }


def _restricted_namespace() -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            },
        }
    )


def _helm(node: Machine, chosen: Mapping[str, object]) -> None:
    helm = node.inside_network(
        str(binaries.folder() / "helm"), "upgrade", RELEASE, str(CHART), "--install",
        f"--kubeconfig={KUBECONFIG}", f"--kube-context={CONTEXT}", f"--namespace={NAMESPACE}",
        "--values=-", "--wait", "--timeout=180s",
        "--force-conflicts",  # tests scale the operator, which makes its replicas theirs
    )  # fmt: skip
    done = subprocess.run(
        helm, input=json.dumps(chosen), text=True, capture_output=True, check=False
    )
    if done.returncode:
        pods = kubectl.run(node, "describe", "pods", f"--namespace={NAMESPACE}")
        raise InstallError(f"helm: {done.stderr.strip()}\n{pods}")


def install(extra: Mapping[str, object] | None = None) -> Mapping[str, str]:
    """Brings the release up to date with the checkout; `extra` goes over the chart values.

    Returns the references of the images in use. Raises `InstallError`.
    """
    node = machine.require()
    references = images.build()
    images.load(tuple(references.values()))
    shown = yaml.safe_load(EXAMPLE.read_text())["spec"]["runtime"]["image"]
    node_images.name(node, binaries.folder(), references["simulated-engine"], shown)
    kubectl.run(node, "apply", "--server-side", "--filename=-", stdin=_restricted_namespace())
    say("installing the chart")
    _helm(node, {**values(references), **(extra or {})})
    return references


if __name__ == "__main__":
    try:
        install()
    except (InstallError, machine.NotRunningError) as error:
        sys.exit(str(error))
