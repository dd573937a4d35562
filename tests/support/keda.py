"""KEDA, built from its Go module, beside the local cluster: its operator and its metrics server.

Both run as processes on the node, and to the API server they are KEDA's own service account with
the rights of KEDA's own manifests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from local import binaries, kubectl, machine
from local.addresses import NODE_ADDRESS
from local.certificates import ADMIN
from local.kubeconfig import kubeconfig
from local.layout import PKI
from tests.support.api import KubernetesApi, until
from tests.support.external_metrics import API_SERVICE, aggregated
from tests.support.self_signed import self_signed

NAMESPACE = "keda"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:keda-operator"
BETWEEN = f"{NODE_ADDRESS}:9666"
"""Where the metrics server asks the operator."""
METRICS_PORT = 6444

MANIFESTS = (
    *("--kustomize=crd", "--filename=general/namespace.yaml"),
    *("--kustomize=service_account", "--kustomize=rbac"),
    "--filename=metrics-server/role.yaml,metrics-server/role_binding.yaml",
)
"""Of KEDA's folder `config`: all but its Deployments, whose images cannot be had here."""


@contextmanager
def keda(api: KubernetesApi, folder: Path) -> Iterator[None]:
    """Runs for as long as the body does, and looks at all namespaces."""
    programs = binaries.build(binaries.KEDA)
    (module,) = binaries.KEDA
    config = binaries.source(module, binaries.KEDA_PACKAGE) / "config"
    key, written = self_signed(folder, NODE_ADDRESS)
    shutil.copy(written, folder / "ca.crt")
    access = folder / "kubeconfig"
    access.write_text(_as_account())
    operator = (
        str(programs / "keda-operator"),
        f"--cert-dir={folder}",
        f"--metrics-service-bind-address={BETWEEN}",
        *("--metrics-bind-address=0", "--health-probe-bind-address=0"),
    )
    metrics = (
        str(programs / "keda-adapter"),
        *(
            f"--{name}-kubeconfig={access}"
            for name in ("lister", "authentication", "authorization")
        ),
        f"--cert-dir={folder}",
        *(f"--tls-cert-file={written}", f"--tls-private-key-file={key}"),
        *(f"--bind-address={NODE_ADDRESS}", f"--secure-port={METRICS_PORT}", "--port=0"),
        f"--metrics-service-address={BETWEEN}",
    )
    with ExitStack() as running:
        for manifest in MANIFESTS:
            option, _, names = manifest.partition("=")
            where = ",".join(str(config / name) for name in names.split(","))
            _manifests(running, f"{option}={where}")
        for argv in (operator, metrics):
            running.enter_context(_process(argv, folder, access))
        running.enter_context(aggregated(api, NAMESPACE, METRICS_PORT))
        until("KEDA serves external metrics", lambda: _is_available(api), timeout=90)
        yield


def _as_account() -> str:
    """A kubeconfig of the administrator who acts as KEDA's service account."""
    content = json.loads(kubeconfig(ADMIN, PKI))
    (user,) = content["users"]
    user["user"]["as"] = ACCOUNT
    return json.dumps(content)


def _manifests(running: ExitStack, where: str) -> None:
    """Applies them, to be deleted at the end."""
    node = machine.require()
    kubectl.run(node, "apply", "--server-side", where)
    running.callback(kubectl.run, node, "delete", "--ignore-not-found", where)


@contextmanager
def _process(argv: tuple[str, ...], folder: Path, access: Path) -> Iterator[None]:
    environment = {
        **os.environ,
        "KUBECONFIG": str(access),
        "POD_NAMESPACE": NAMESPACE,
        "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
        "WATCH_NAMESPACE": "",
    }
    with (folder / f"{Path(argv[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def _is_available(api: KubernetesApi) -> bool:
    found = api.get("APIService", None, API_SERVICE) or {}
    return any(
        each["type"] == "Available" and each["status"] == "True"
        for each in found.get("status", {}).get("conditions", ())
    )
