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

from speculative_operator.api.names import LABEL_MODEL_UID, LABEL_REVISION, PORT_HTTP_NUMBER
from tests.support.api import KubernetesApi, Manifest, condition, until

MODEL = "SpeculativeModel"
BUDGET = "PodDisruptionBudget"
CHILDREN = ("ControllerRevision", "Deployment", "Service", "ServiceAccount", "ConfigMap", BUDGET)

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
        "rollout": {"trial": {"mode": "Off"}},
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
    serve = made.server.serve_forever
    thread = threading.Thread(target=serve, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


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


class Place:
    """One model in one namespace, with what tests do to it and ask about it."""

    def __init__(self, api: KubernetesApi, namespace: str, name: str) -> None:
        self.api = api
        self.namespace = namespace
        self.name = name

    def create(self, **sections: Any) -> Manifest:
        """Applies the model; `sections` go over its spec."""
        return self.api.create(nodeless_model(self.name, **sections), self.namespace)

    def read(self) -> Manifest:
        """The model as it is now."""
        found = self.api.get(MODEL, self.namespace, self.name)
        assert found is not None
        return found

    def edit(self, **sections: Any) -> Manifest:
        """Changes its spec by a merge patch."""
        return self.api.merge(MODEL, self.namespace, self.name, {"spec": sections})

    def children(self) -> dict[tuple[str, str], Manifest]:
        """All that belongs to it, by kind and name."""
        selector = f"{LABEL_MODEL_UID}={self.read()['metadata']['uid']}"
        return {
            (kind, child["metadata"]["name"]): child
            for kind in CHILDREN
            for child in self.api.all(kind, self.namespace, selector)
        }

    def child(self, kind: str) -> Manifest:
        """The only one of a kind."""
        found = [child for (of, _), child in self.children().items() if of == kind]
        assert len(found) == 1, f"{len(found)} of {kind}"
        return found[0]

    def alive(self, key: str = "") -> list[Manifest]:
        """Its pods that are not ending, of one revision or of all, by name."""
        selector = f"{LABEL_MODEL_UID}={self.read()['metadata']['uid']}"
        pods = self.api.all(
            "Pod", self.namespace, f"{selector},{LABEL_REVISION}={key}" if key else selector
        )
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["name"]))

    def pods(self, wanted: int, key: str = "") -> list[Manifest]:
        """Its pods, once there are so many of them."""
        until(f"{wanted} pods of {self.name} {key}", lambda: len(self.alive(key)) == wanted or None)
        return self.alive(key)

    def wait(self, kind: str, status: str, reason: str | None = None) -> Manifest:
        """The condition, once it is so for the newest generation."""

        def holds(model: Manifest) -> bool:
            found = condition(model, kind)
            return (
                found.get("status") == status
                and reason in (None, found["reason"])
                and bool(found["observedGeneration"] == model["metadata"]["generation"])
            )

        words = f"{kind}={status} {reason or ''}"
        model = self.api.wait(MODEL, self.namespace, self.name, holds, what=words)
        return condition(model, kind)

    def current(self) -> str:
        """The key of the revision that the newest spec asks for."""

        def known(model: Manifest) -> bool:
            status = model.get("status", {})
            return bool(status.get("observedGeneration") == model["metadata"]["generation"])

        model = self.api.wait(MODEL, self.namespace, self.name, known, what="the newest revision")
        key: str = model["status"]["revisions"]["current"]
        return key

    def serve(self, wanted: int = 1) -> None:
        """Makes all pods Ready, and waits until the model says so."""
        with engine(self.name) as running:
            for pod in self.pods(wanted):
                make_ready(self.api, pod, running.address)
            self.wait("Ready", "True")
