"""A small aggregated API that serves one external metric, as KEDA or a Prometheus adapter would."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from local.addresses import NODE_ADDRESS
from tests.support.api import KubernetesApi, Manifest

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
NAME = "external-metrics"
API_SERVICE = f"{VERSION}.{GROUP}"


AT_ONCE = {"stabilizationWindowSeconds": 0}

Read = Callable[[], int]
"""Gives the metric's value of now."""


@contextmanager
def external_metric(api: KubernetesApi, namespace: str, folder: Path, read: Read) -> Iterator[None]:
    """Every metric of the group has the value that is read, for as long as the body runs."""
    server = ThreadingHTTPServer((NODE_ADDRESS, 0), _handler(read))
    server.socket = _encrypted(folder).wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for manifest in _service(server.server_port):
        api.create(manifest, namespace)
    api.create(_api_service(namespace), None)
    try:
        yield
    finally:
        api.delete("APIService", None, API_SERVICE)
        server.shutdown()


def autoscaler(model: str, waiting: int) -> Manifest:
    """One to two replicas of a model, so that each has so many requests that wait."""
    target = {"apiVersion": "speculation.dev/v1alpha1", "kind": "SpeculativeModel", "name": model}
    metric = {
        "type": "External",
        "external": {
            "metric": {"name": "waiting"},
            "target": {"type": "AverageValue", "averageValue": str(waiting)},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": model},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [metric],
            "behavior": {"scaleUp": AT_ONCE, "scaleDown": AT_ONCE},
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
        resource = {"name": "waiting", "namespaced": True, "kind": "ExternalMetricValueList"}
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{GROUP}/{VERSION}",
            "resources": [{**resource, "singularName": "", "verbs": ["get"]}],
        }
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    item = {"metricName": "waiting", "metricLabels": {}, "timestamp": now, "value": str(read())}
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {},
        "items": [item],
    }


def _encrypted(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "metrics.key", folder / "metrics.crt"
    command = (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", "1", "-subj", f"/CN={NAME}", "-keyout", key, "-out", certificate),
    )
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
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
