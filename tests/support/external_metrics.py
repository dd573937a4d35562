"""A small aggregated API that serves one external metric, as KEDA or a Prometheus adapter would."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from local.addresses import NODE_ADDRESS
from tests.support.api import KubernetesApi, Manifest
from tests.support.self_signed import self_signed

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
NAME = "external-metrics"
METRIC = "requests_in_flight"
API_SERVICE = f"{VERSION}.{GROUP}"

Read = Callable[[], int]
"""Gives the metric's value of now."""


@contextmanager
def external_metric(api: KubernetesApi, namespace: str, folder: Path, read: Read) -> Iterator[None]:
    """Every metric of the group has the value that is read, for as long as the body runs."""
    server = ThreadingHTTPServer((NODE_ADDRESS, 0), _handler(read))
    server.socket = _encrypted(folder).wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with aggregated(api, namespace, server.server_port):
            yield
    finally:
        server.shutdown()


@contextmanager
def aggregated(api: KubernetesApi, namespace: str, port: int) -> Iterator[None]:
    """The API server asks a process on the node for external metrics while the body runs."""
    for manifest in _service(port):
        api.create(manifest, namespace)
    api.create(_api_service(namespace), None)
    try:
        yield
    finally:
        api.delete("APIService", None, API_SERVICE)


def autoscaler(model: str, each: int, *, up: int = 0, down: int = 0) -> Manifest:
    """One to four replicas of a model, so that each has so much of the metric; more once that was
    so for `up` seconds, fewer for `down`."""
    target = {"apiVersion": "speculation.dev/v1alpha1", "kind": "SpeculativeModel", "name": model}
    metric = {
        "type": "External",
        "external": {
            "metric": {"name": METRIC},
            "target": {"type": "AverageValue", "averageValue": str(each)},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": model},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [metric],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": up},
                "scaleDown": {"stabilizationWindowSeconds": down},
            },
        },
    }


def _handler(read: Read) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(_answer(self.path, read)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


def _answer(path: str, read: Read) -> Manifest:
    """The list of one value, or the group's resources, which the API server asks for."""
    if "/namespaces/" not in path:
        resource = {"name": METRIC, "namespaced": True, "kind": "ExternalMetricValueList"}
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{GROUP}/{VERSION}",
            "resources": [{**resource, "singularName": "", "verbs": ["get"]}],
        }
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    item = {"metricName": METRIC, "metricLabels": {}, "timestamp": now, "value": str(read())}
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {},
        "items": [item],
    }


def _encrypted(folder: Path) -> ssl.SSLContext:
    key, written = self_signed(folder, NODE_ADDRESS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(written, key)
    return context


def _service(port: int) -> Iterator[Manifest]:
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _api_service(namespace: str) -> Manifest:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "service": {"name": NAME, "namespace": namespace, "port": 443},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }
