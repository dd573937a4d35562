"""Models whose pods run nowhere: no scheduler takes them, and a test says when they are Ready.

Their "engine" is a small server in the test's own process on a loopback address, which is put into
the pod's status as its IP, so the operator reaches it as it would reach a pod.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from speculative_operator.api.names import LABEL_REVISION, PORT_HTTP_NUMBER
from tests.support.api import KubernetesApi, Manifest

NOBODY = "nobody"
"""A scheduler that does not exist."""

_numbers = itertools.count(1)


def nodeless_model(name: str, **sections: Any) -> Manifest:
    """A model whose pods stay where the API server put them; `sections` go over its spec."""
    spec: dict[str, Any] = {
        "model": {"source": "hf://Qwen/Qwen3-8B"},
        "speculation": {"method": "eagle3", "draft": {"source": "hf://example/draft"}},
        "accelerator": {"products": ["MI300X"]},
        "runtime": {"podTemplate": {"spec": {"schedulerName": NOBODY}}},
    }
    for section, value in sections.items():
        spec[section] = {**spec.get(section, {}), **value} if isinstance(value, dict) else value
    return {
        "apiVersion": "speculation.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": name},
        "spec": spec,
    }


class Engine:
    """Answers /v1/models at an address of its own. Set `names` to what it should list."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.status = 200
        self.asked = 0
        number = next(_numbers)
        self.address = f"127.{os.getpid() % 250 + 1}.{number // 250}.{number % 250 + 1}"
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                engine.asked += self.path == "/v1/models"
                body = json.dumps({"data": [{"id": name} for name in engine.names]}).encode()
                self.send_response(engine.status if self.path == "/v1/models" else 404)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer((self.address, PORT_HTTP_NUMBER), Handler)


@contextmanager
def engine(*names: str) -> Iterator[Engine]:
    """An engine that lists `names`."""
    made = Engine(names)
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


def pods_of(api: KubernetesApi, namespace: str, key: str = "") -> list[Manifest]:
    """Pods that are not ending, of one revision or of all, by name."""
    selector = f"{LABEL_REVISION}={key}" if key else LABEL_REVISION
    pods = api.all("Pod", namespace, selector)
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return sorted(alive, key=lambda pod: str(pod["metadata"]["name"]))


def set_status(api: KubernetesApi, pod: Manifest, status: dict[str, Any]) -> None:
    """Puts a status into a pod, as its kubelet would."""
    metadata = pod["metadata"]
    path = api.path("Pod", metadata["namespace"], metadata["name"])
    api.call("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")


def make_ready(api: KubernetesApi, pod: Manifest, address: str) -> None:
    """The pod runs and its readiness probe passes."""
    true = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
    running = {"name": "engine", "ready": True, "restartCount": 0, "image": "", "imageID": ""}
    set_status(
        api,
        pod,
        {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": true,
            "containerStatuses": [{**running, "state": {"running": {}}}],
        },
    )


def fail(api: KubernetesApi, pod: Manifest, message: str) -> None:
    """The pod's engine has ended, and the kubelet is about to start it again."""
    ended = {"exitCode": 1, "reason": "Error", "message": message}
    container = {"name": "engine", "ready": False, "restartCount": 1, "image": "", "imageID": ""}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
    false = {"type": "Ready", "status": "False"}
    status = {
        **container,
        "state": {"waiting": waiting},
        "lastState": {"terminated": ended},
    }
    set_status(
        api,
        pod,
        {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"}, false],
            "containerStatuses": [status],
        },
    )


def vanish(api: KubernetesApi, pod: Manifest) -> None:
    """Ends a pod at once, as a kubelet would after its grace; pods here have no kubelet."""
    metadata = pod["metadata"]
    path = api.path("Pod", metadata["namespace"], metadata["name"])
    api.call("DELETE", path, {"gracePeriodSeconds": 0})
