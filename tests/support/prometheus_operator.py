"""The Prometheus operator, built from its Go module, beside the local cluster.

It runs as a process, and so does the Prometheus that it configures: what it makes of PodMonitors
and PrometheusRules is read from its Secret and ConfigMap.
"""

from __future__ import annotations

import base64
import gzip
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local import binaries, kubectl, machine
from local.addresses import API_URL
from local.certificates import ADMIN
from local.layout import PKI
from tests.support.api import KubernetesApi, until

KINDS = (
    *("alertmanagerconfigs", "alertmanagers", "podmonitors", "probes", "prometheusagents"),
    *("prometheuses", "prometheusrules", "scrapeconfigs", "servicemonitors", "thanosrulers"),
)


@contextmanager
def prometheus_operator(folder: Path, namespace: str) -> Iterator[None]:
    """Runs with its CRDs for as long as the body does, and looks at all namespaces."""
    program = binaries.build(binaries.PROMETHEUS_OPERATOR) / "prometheus-operator"
    (module,) = binaries.PROMETHEUS_OPERATOR
    source = binaries.source(module, binaries.PROMETHEUS_OPERATOR_PACKAGE)
    crds = [
        f"--filename={source}/example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml"
        for kind in KINDS
    ]
    node = machine.require()
    kubectl.run(node, "apply", "--server-side", *crds)
    command = (
        program,
        f"--apiserver={API_URL}",
        f"--ca-file={PKI / 'ca.crt'}",
        f"--cert-file={PKI / f'{ADMIN.file}.crt'}",
        f"--key-file={PKI / f'{ADMIN.file}.key'}",
        f"--prometheus-instance-namespaces={namespace}",
        "--web.listen-address=127.0.0.1:0",
    )
    with (folder / "operator.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()
            kubectl.run(node, "delete", *crds)


def select_everything(namespace: str) -> None:
    """A Prometheus without pods that takes every PodMonitor and rule of the cluster."""
    all_of_them: dict[str, object] = {}
    spec = {
        "version": "v2.42.0",
        "replicas": 0,
        "podMonitorSelector": all_of_them,
        "podMonitorNamespaceSelector": all_of_them,
        "ruleSelector": all_of_them,
        "ruleNamespaceSelector": all_of_them,
    }
    manifest = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "metadata": {"name": "all", "namespace": namespace},
        "spec": spec,
    }
    kubectl.run(
        machine.require(), "apply", "--server-side", "--filename=-", stdin=yaml.safe_dump(manifest)
    )


def generated(
    api: KubernetesApi, namespace: str, folder: Path, jobs: set[str]
) -> Mapping[str, Any]:
    """The configuration that the operator has made, once it has these jobs and a file of rules;
    the rules are put into the folder."""

    def made() -> Mapping[str, Any] | None:
        secret = api.get("Secret", namespace, "prometheus-all")
        rules = api.get("ConfigMap", namespace, "prometheus-all-rulefiles-0")
        if secret is None or rules is None or not rules.get("data"):
            return None
        packed = base64.b64decode(secret["data"]["prometheus.yaml.gz"])
        text = gzip.decompress(packed).decode()
        # A reloader beside Prometheus writes the number of its shard there: it has the only one.
        found: dict[str, Any] = yaml.safe_load(text.replace("$(SHARD)", "0"))
        if not jobs <= {job["job_name"] for job in found.get("scrape_configs", ())}:
            return None
        for name, content in rules["data"].items():
            (folder / name).write_text(content)
        return {**found, "rule_files": [str(folder / "*.yaml")]}

    return until("the operator has made a configuration", made, timeout=60)
