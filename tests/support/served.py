"""One model on the node as a test looks at it: status, pods, engines, Events, answers."""

from __future__ import annotations

import itertools
import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from local import kubectl, machine
from tests.support.api import KubernetesApi, Manifest, is_true, until
from tests.support.reached import reach

ASK = """
import sys, urllib.request
body = sys.argv[2].encode() if len(sys.argv) > 2 else None
request = urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""

CONTROL_PORT = 9406
"""Of the simulated engine."""


@dataclass(frozen=True)
class Served:
    """A SpeculativeModel that was applied."""

    api: KubernetesApi
    namespace: str
    name: str

    def resource(self) -> Manifest:
        """The SpeculativeModel as it is now."""
        found = self.api.get("SpeculativeModel", self.namespace, self.name)
        assert found is not None, f"SpeculativeModel {self.name} is gone"
        return found

    def status(self) -> dict[str, Any]:
        """Its status; {} while there is none."""
        status: dict[str, Any] = self.resource().get("status", {})
        return status

    def wait(self, what: str, holds: Callable[[Manifest], bool], timeout: float = 60) -> Manifest:
        """The resource once `holds`."""
        return self.api.wait(
            "SpeculativeModel", self.namespace, self.name, holds, what=what, timeout=timeout
        )

    def wait_ready(self, timeout: float = 240) -> Manifest:
        """The resource once it is Ready for its newest spec, with nothing left to roll."""
        return self.wait(
            f"{self.name} is Ready",
            lambda found: (
                is_true(found, "Ready")
                and not is_true(found, "Progressing")
                and found["status"]["observedGeneration"] == found["metadata"]["generation"]
            ),
            timeout,
        )

    def wait_measured(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> Manifest:
        """The resource once its evidence is so.

        Numbers alone are written once a minute, but with every answer to an edit: so the spec is
        edited, where it means nothing to engine and tuner, until they are so.
        """
        looks = itertools.count()

        def look(found: Manifest) -> bool:
            status = found.get("status", {})
            if status.get("observedGeneration") != found["metadata"]["generation"]:
                return False
            if holds(status.get("evidence", {})):
                return True
            self.change({"service": {"annotations": {"look": str(next(looks))}}})
            return False

        return self.wait(what, look, timeout=120)

    def change(self, change: dict[str, Any]) -> None:
        """Merges into the spec, as the user."""
        self.api.merge("SpeculativeModel", self.namespace, self.name, {"spec": change})

    def pods(self) -> list[Manifest]:
        """Its pods that are not being deleted, oldest first."""
        uid = self.resource()["metadata"]["uid"]
        found = self.api.all("Pod", self.namespace, f"speculation.dev/model-uid={uid}")
        alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def pod(self) -> Manifest:
        """Its only pod."""
        (pod,) = self.pods()
        return pod

    def address(self) -> str:
        """Where its only pod's engine is reached."""
        return str(self.pod()["status"]["podIP"])

    def url(self) -> str:
        """Its Service, by the cluster address."""
        service = self.api.get("Service", self.namespace, self.name)
        assert service is not None
        return f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"

    def schedule(self) -> str:
        """The text of the schedule in the current revision's ConfigMap."""
        key = self.status()["revisions"]["current"]
        found = self.api.all("ConfigMap", self.namespace, f"speculation.dev/revision={key}")
        (text,) = [
            str(item["data"]["schedule.json"])
            for item in found
            if "schedule.json" in item.get("data", {})
        ]
        return text

    def events(self) -> list[Manifest]:
        """The Events on it, oldest first: of the operator's each has its time in microseconds."""
        found = [
            event
            for event in self.api.all("Event", self.namespace)
            if event["involvedObject"]["name"] == self.name
            and event["involvedObject"]["kind"] == "SpeculativeModel"
        ]
        return sorted(found, key=lambda event: str(event["eventTime"]))

    def messages(self, reason: str) -> list[str]:
        """What the Events of one reason on it say, oldest first."""
        return [str(event["message"]) for event in self.events() if event["reason"] == reason]

    def wait_told(self, *reasons: str) -> None:
        """Until there is an Event of each reason: they are sent after the status is written."""
        until(
            f"Events tell of {', '.join(reasons)}",
            lambda: {*reasons} <= {event["reason"] for event in self.events()},
            timeout=20,
        )

    def ask_inside(self, path: str, body: object = None) -> dict[str, Any]:
        """An answer of the Service by its cluster name, asked from within a pod."""
        url = f"http://{self.name}.{self.namespace}.svc.cluster.local{path}"
        words = [url] if body is None else [url, json.dumps(body)]
        text = kubectl.run(
            machine.require(),
            "exec",
            self.pod()["metadata"]["name"],
            f"--namespace={self.namespace}",
            "--container=engine",
            "--",
            "python3",
            "-c",
            ASK,
            *words,
        )
        answer: dict[str, Any] = json.loads(text)
        return answer

    def complete(self, prompt: str, tokens: int = 48) -> str:
        """The greedy continuation of a prompt, through the Service."""
        body = {"model": self.name, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        reach(self.url())
        return str(_send(f"{self.url()}/v1/completions", body)["choices"][0]["text"])

    def world(self, *, address: str | None = None, **conditions: Any) -> None:
        """Changes the simulated engine at a pod's address, by default its only pod's."""
        _send(f"http://{address or self.address()}:{CONTROL_PORT}/world", conditions, "PATCH")


def apply(api: KubernetesApi, namespace: str, manifest: Manifest) -> Served:
    """Applies a model as a user and returns the handle on it."""
    api.apply(manifest, namespace)
    return Served(api, namespace, manifest["metadata"]["name"])


def settle(models: Sequence[Served]) -> None:
    """Waits until statuses stand still for some seconds."""
    versions: list[tuple[float, list[str]]] = []

    def still() -> bool:
        now = [model.resource()["metadata"]["resourceVersion"] for model in models]
        if not versions or versions[-1][1] != now:
            versions.append((time.monotonic(), now))
        return time.monotonic() - versions[-1][0] > 5

    until("statuses stand still", still, timeout=120, interval=1)


def _send(url: str, body: object, verb: str = "POST") -> dict[str, Any]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}, method=verb
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found
