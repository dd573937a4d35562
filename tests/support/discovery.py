"""Tells a Prometheus of pods in the words of its own discovery of Kubernetes' role `pod`, by a
file: Debian's Prometheus is built without that discovery. What is relabelled is the same."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.api import KubernetesApi, Manifest

PREFIX = "__meta_kubernetes"
EVERY_SECONDS = 1.0


@contextmanager
def discovered(
    api: KubernetesApi, folder: Path, namespaces: Collection[str]
) -> Iterator[list[dict[str, Any]]]:
    """The configuration of a discovery of these namespaces' pods, which goes on for as long as the
    body does."""
    file, over = folder / "pods.json", threading.Event()

    def write() -> None:
        pods = [pod for namespace in namespaces for pod in api.all("Pod", namespace)]
        scratch = file.with_suffix(".new")
        scratch.write_text(json.dumps([group for pod in pods for group in _targets(pod)]))
        scratch.replace(file)

    def run() -> None:
        while not over.wait(EVERY_SECONDS):
            write()

    write()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield [{"files": [str(file)], "refresh_interval": f"{EVERY_SECONDS:.0f}s"}]
    finally:
        over.set()
        thread.join()


def _targets(pod: Manifest) -> Iterator[dict[str, Any]]:
    """One for each port of each container, once the pod has an address."""
    address = pod["status"].get("podIP")
    if address is None:
        return
    metadata = pod["metadata"]
    of_pod = {
        f"{PREFIX}_namespace": metadata["namespace"],
        f"{PREFIX}_pod_name": metadata["name"],
        f"{PREFIX}_pod_ip": address,
        f"{PREFIX}_pod_phase": pod["status"]["phase"],
    }
    for name, value in metadata.get("labels", {}).items():
        label = re.sub(r"[^a-zA-Z0-9_]", "_", name)
        of_pod |= {
            f"{PREFIX}_pod_label_{label}": value,
            f"{PREFIX}_pod_labelpresent_{label}": "true",
        }
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            number = str(port["containerPort"])
            of_port = {
                f"{PREFIX}_pod_container_name": container["name"],
                f"{PREFIX}_pod_container_port_name": port.get("name", ""),
                f"{PREFIX}_pod_container_port_number": number,
            }
            yield {"targets": [f"{address}:{number}"], "labels": {**of_pod, **of_port}}
