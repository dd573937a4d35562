"""A raw, synchronous client of the API server for tests: plain dicts, short verbs, waits."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import load_kube_config

from local.access import ClusterAccess

Manifest = dict[str, Any]
T = TypeVar("T")

PATHS = {
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "ControllerRevision": "/apis/apps/v1/namespaces/{namespace}/controllerrevisions",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
    "Event": "/api/v1/namespaces/{namespace}/events",
    "HorizontalPodAutoscaler": (
        "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    ),
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "ResourceQuota": "/api/v1/namespaces/{namespace}/resourcequotas",
    "ScaledObject": "/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "SpeculativeModel": "/apis/speculation.dev/v1alpha1/namespaces/{namespace}/speculativemodels",
}


class Refused(Exception):
    """The API server answered with an error; `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


def until(
    what: str, probe: Callable[[], T | None], *, timeout: float = 60, interval: float = 0.2
) -> T:
    """The first true answer of `probe`. Fails with `what` and the last answer after `timeout` s."""
    deadline = time.monotonic() + timeout
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:.0f} s: {what}")
        time.sleep(interval)


class KubernetesApi:
    """Verbs on objects by kind, namespace and name."""

    def __init__(self, access: ClusterAccess) -> None:
        configuration = Configuration()
        load_kube_config(  # type: ignore[no-untyped-call]
            str(access.kubeconfig), context=access.context, client_configuration=configuration
        )
        self._host = configuration.host
        # ApiClient knows every way in which a kubeconfig may authenticate.
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._headers = {
            key: value
            for key, value in {
                "authorization": configuration.get_api_key_with_prefix("BearerToken")
            }.items()
            if value
        }

    def call(
        self, verb: str, path: str, body: object = None, content: str = "application/json"
    ) -> Manifest:
        """One request; the answer's JSON. Raises `Refused`."""
        answer: urllib3.BaseHTTPResponse = self._pool.request(
            verb,
            self._host + path,
            body=None if body is None else json.dumps(body),
            headers={**self._headers, "content-type": content},
            timeout=30,
        )
        text = answer.data.decode()
        if answer.status >= 400:
            try:
                message = str(json.loads(text)["message"])
            except (ValueError, KeyError):
                message = text
            raise Refused(answer.status, message)
        found: Manifest = json.loads(text)
        return found

    def path(self, kind: str, namespace: str | None, name: str | None = None) -> str:
        """Where objects of a kind, or one of them, are."""
        folder = PATHS[kind].format(namespace=namespace)
        return folder if name is None else f"{folder}/{name}"

    def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        """The object, or None if there is none of that name."""
        try:
            return self.call("GET", self.path(kind, namespace, name))
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def all(self, kind: str, namespace: str | None, selector: str = "") -> list[Manifest]:
        """All objects of a kind, fewer with a label selector."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        return list(self.call("GET", self.path(kind, namespace) + query)["items"])

    def watch(self, kind: str, namespace: str | None, seconds: int) -> Iterator[Manifest]:
        """Each state of each object of a kind, as it is and as it becomes, for so many seconds."""
        query = f"?watch=true&timeoutSeconds={seconds}"
        answer: urllib3.BaseHTTPResponse = self._pool.request(
            "GET",
            self._host + self.path(kind, namespace) + query,
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=30, read=seconds + 30),
        )
        with contextlib.closing(answer):
            for line in answer:
                yield json.loads(line)["object"]

    def create(self, manifest: Manifest, namespace: str | None = None) -> Manifest:
        """Creates; `namespace` goes over the manifest's own."""
        place = namespace or manifest["metadata"].get("namespace")
        return self.call("POST", self.path(manifest["kind"], place), manifest)

    def apply(
        self, manifest: Manifest, namespace: str | None = None, manager: str = "a-user"
    ) -> Manifest:
        """Server-side apply as somebody else than the operator, with force."""
        place = namespace or manifest["metadata"].get("namespace")
        path = self.path(manifest["kind"], place, manifest["metadata"]["name"])
        return self.call(
            "PATCH",
            f"{path}?fieldManager={manager}&force=true",
            manifest,
            "application/apply-patch+yaml",
        )

    def merge(
        self, kind: str, namespace: str | None, name: str, change: Mapping[str, Any]
    ) -> Manifest:
        """A merge patch, as `kubectl patch --type merge` sends it."""
        return self.call(
            "PATCH", self.path(kind, namespace, name), change, "application/merge-patch+json"
        )

    def delete(
        self, kind: str, namespace: str | None, name: str, *, grace: int | None = None
    ) -> None:
        """Deletes with children in the background; fine if it is gone already. `grace`, in seconds,
        goes over a pod's own; 0 takes it off the API by force."""
        options = None if grace is None else {"gracePeriodSeconds": grace}
        try:
            self.call("DELETE", self.path(kind, namespace, name), options)
        except Refused as error:
            if error.status != 404:
                raise

    def wait(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        condition: Callable[[Manifest], bool],
        *,
        what: str,
        timeout: float = 60,
    ) -> Manifest:
        """The object once it is there and `condition` holds; fails showing its status."""
        last: list[Manifest | None] = [None]

        def probe() -> Manifest | None:
            last[0] = self.get(kind, namespace, name)
            return last[0] if last[0] and condition(last[0]) else None

        try:
            return until(what, probe, timeout=timeout)
        except AssertionError as error:
            status = yaml.safe_dump((last[0] or {}).get("status"))
            raise AssertionError(f"{error}\nlast seen status of {kind} {name}:\n{status}") from None


def condition(resource: Manifest, kind: str) -> Manifest:
    """A condition of the status by its type; {} while there is none."""
    conditions = resource.get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == kind), {})


def is_true(resource: Manifest, kind: str) -> bool:
    """Whether a condition is True for the resource's newest generation."""
    found = condition(resource, kind)
    return (
        found.get("status") == "True"
        and found.get("observedGeneration") == resource["metadata"]["generation"]
    )
