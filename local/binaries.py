"""Builds the cluster's programs from their Go modules, once for each content of the module files.

`python3 -m local.binaries` prints the folder that holds them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from local.paths import CACHE, LOCAL, content_key

KUBERNETES_VERSION = "v1.37.2"


@dataclass(frozen=True)
class Module:
    """One Go module and the programs that it yields, as (package, file name)."""

    folder: Path
    programs: tuple[tuple[str, str], ...]
    ldflags: str = "-s -w"

    def key(self) -> str:
        return content_key((self.folder / "go.mod", self.folder / "go.sum"), self.ldflags)


CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet", "kube-proxy")
CONTAINERD = "github.com/containerd/containerd/v2/cmd/"

MODULES = (
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


def folder() -> Path:
    """Where the programs are (or will be) for the module files of this checkout."""
    return CACHE / "binaries" / "-".join(module.key() for module in MODULES)


def build() -> Path:
    """Builds what is missing, telling which program it is at; returns `folder()`."""
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    wanted = [(module, package, name) for module in MODULES for package, name in module.programs]
    missing = [item for item in wanted if not (target / item[2]).exists()]
    for number, (module, package, name) in enumerate(missing, 1):
        started = time.monotonic()
        print(f"building {name} ({number} of {len(missing)})", file=sys.stderr, flush=True)
        scratch = target / f".{name}.{os.getpid()}"
        subprocess.run(
            ["go", "build", "-trimpath", "-ldflags", module.ldflags, "-o", scratch, package],
            cwd=module.folder,
            check=True,
            env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"},
        )
        scratch.replace(target / name)
        print(f"built {name} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return target


def remove_others() -> None:
    """Deletes the programs of other module files, which nothing will ask for again."""
    keep = folder()
    for other in keep.parent.iterdir():
        if other != keep:
            shutil.rmtree(other)


if __name__ == "__main__":
    print(build())
