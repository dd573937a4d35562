"""Builds programs from Go modules, once for each content of the modules: the cluster's, and ours.

`python3 -m local.binaries` prints the folders that hold them, with `--long` also of what only the
long tests use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from local.locks import alone
from local.paths import CACHE, LOCAL, content_key
from local.waiting import say

KUBERNETES_VERSION = "v1.37.2"


@dataclass(frozen=True)
class Module:
    """One Go module and the programs that it yields, as (package, file name)."""

    folder: Path
    programs: tuple[tuple[str, str], ...]
    ldflags: str = "-s -w"

    def key(self) -> str:
        files = (*self.folder.glob("*.go"), self.folder / "go.mod", self.folder / "go.sum")
        return content_key(files, self.ldflags)


CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet", "kube-proxy")
CONTAINERD = "github.com/containerd/containerd/v2/cmd/"

CLUSTER = (
    Module(
        LOCAL / "modules" / "kubernetes",
        (
            *((f"k8s.io/kubernetes/cmd/{name}", name) for name in (*CONTROL_PLANE, *NODE)),
            ("go.etcd.io/etcd/server/v3", "etcd"),
            ("github.com/coredns/coredns", "coredns"),
            ("helm.sh/helm/v4/cmd/helm", "helm"),
            ("sigs.k8s.io/kwok/cmd/kwok", "kwok"),
        ),
        # Without the version the kubelet and the API server call themselves v0.0.0.
        f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
    ),
    Module(
        LOCAL / "modules" / "containerd",
        tuple(
            (CONTAINERD + name, name) for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        ),
    ),
)


GITOPS = (Module(LOCAL / "gitops", ((".", "gitops"),)),)
"""What Flux would do to a cluster, for tests."""
HELM_UNITTEST = (
    Module(
        LOCAL / "modules" / "helm-unittest",
        (("github.com/helm-unittest/helm-unittest/cmd/helm-unittest", "helm-unittest"),),
    ),
)
"""Plays the suites of the chart, in the long tests."""
PROMETHEUS_OPERATOR_PACKAGE = "github.com/prometheus-operator/prometheus-operator"
PROMETHEUS_OPERATOR = (
    Module(
        LOCAL / "modules" / "prometheus-operator",
        (
            (
                "github.com/prometheus-operator/prometheus-operator/cmd/operator",
                "prometheus-operator",
            ),
        ),
    ),
)
"""Makes a configuration of the chart's monitors and rules, in the long tests."""
KEDA_PACKAGE = "github.com/kedacore/keda/v2"
KEDA = (
    Module(
        LOCAL / "modules" / "keda",
        tuple((f"{KEDA_PACKAGE}/cmd/{name}", f"keda-{name}") for name in ("operator", "adapter")),
    ),
)
"""Scales a model by a query to Prometheus, in the long tests."""


def folder(modules: tuple[Module, ...] = CLUSTER) -> Path:
    """Where the programs are (or will be) for the modules as they are in this checkout."""
    return CACHE / "binaries" / "-".join(module.key() for module in modules)


def build(modules: tuple[Module, ...] = CLUSTER) -> Path:
    """Builds what is missing, telling which program it is at; returns their `folder()`."""
    target = folder(modules)
    wanted = [(module, package, name) for module in modules for package, name in module.programs]
    with alone(target):
        missing = [item for item in wanted if not (target / item[2]).exists()]
        for number, (module, package, name) in enumerate(missing, 1):
            started = time.monotonic()
            say(f"building {name} ({number} of {len(missing)})")
            _build(module, package, target / name)
            say(f"built {name} in {time.monotonic() - started:.0f} s")
    return target


def source(module: Module, package: str) -> Path:
    """The folder of a Go module's files that one of ours requires, downloaded if need be."""
    download = subprocess.check_output(
        ["go", "mod", "download", "-json", package], cwd=module.folder, text=True
    )
    return Path(json.loads(download)["Dir"])


def _build(module: Module, package: str, program: Path) -> None:
    scratch = program.with_name(f".{program.name}")
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags", module.ldflags, "-o", scratch, package],
        cwd=module.folder,
        check=True,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
    )
    scratch.replace(program)


OF_LONG_TESTS = (HELM_UNITTEST, PROMETHEUS_OPERATOR, KEDA)
"""Built before the tests, which have no way out of the cluster's network to download modules."""


if __name__ == "__main__":
    for modules in (CLUSTER, GITOPS, *(OF_LONG_TESTS if "--long" in sys.argv[1:] else ())):
        print(build(modules))
