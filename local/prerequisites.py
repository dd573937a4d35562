"""What the machine must bring along: each missing thing is one line with the command that mends it.

`python3 -m local.prerequisites` lists what is missing, with `--install` it first installs the
Debian packages among it. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from local.paths import CACHE

DISK_GIB = 15
GO_VERSION = (1, 26)
CNI_PLUGINS = Path("/usr/lib/cni")

# What is looked for -> the Debian package that brings it.
PACKAGES = {
    "/usr/bin/python3.11": "python3.11",
    "/usr/lib/python3.11/ensurepip": "python3.11-venv",
    "/usr/sbin/runc": "runc",
    str(CNI_PLUGINS / "bridge"): "containernetworking-plugins",
    "/usr/sbin/iptables": "iptables",
    "/usr/sbin/conntrack": "conntrack",
    "/usr/bin/buildah": "buildah",
    "/usr/sbin/debootstrap": "debootstrap",
    "/usr/sbin/ip": "iproute2",
    "/usr/bin/unshare": "util-linux",
    "/usr/bin/openssl": "openssl",
    "/usr/bin/git": "git",
    "/usr/bin/jq": "jq",
    "/usr/bin/curl": "curl",
    "/usr/bin/lua5.1": "lua5.1",
    "/usr/lib/x86_64-linux-gnu/libnuma.so.1": "libnuma1",
    "/usr/bin/promtool": "prometheus",
    "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}


class PrerequisiteError(RuntimeError):
    """Something is missing; the message has one line for each thing."""


def missing_packages() -> tuple[str, ...]:
    return tuple(package for path, package in PACKAGES.items() if not Path(path).exists())


def _debian_release() -> str:
    release = Path("/etc/os-release")
    fields = (
        dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line)
        if release.exists()
        else {}
    )
    return f"{fields.get('ID', 'unknown')} {fields.get('VERSION_ID', '').strip(chr(34))}".strip()


def _go_version() -> tuple[int, int] | None:
    if shutil.which("go") is None:
        return None
    answer = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else None


def problems() -> Iterator[str]:
    """One line for each thing that is missing, with the command that mends it."""
    if os.geteuid() != 0:
        yield "not root: the cluster makes namespaces and mounts; run: sudo -E make cluster"
    if (release := _debian_release()) != "debian 12":
        yield f"this is {release}, not Debian 12: run inside one: debootstrap bookworm DIRECTORY"
    if packages := missing_packages():
        yield (
            f"missing Debian packages: run: apt-get update && apt-get install -y "
            f"{' '.join(packages)}"
        )
    go = _go_version()
    if go is None or go < GO_VERSION:
        found = "no Go" if go is None else f"Go {go[0]}.{go[1]}"
        yield (
            f"{found}, but Kubernetes needs 1.26 or newer: run: "
            "curl -fL https://go.dev/dl/go1.26.6.linux-amd64.tar.gz | tar -C /usr/local -xz "
            "&& export PATH=/usr/local/go/bin:$PATH"
        )
    CACHE.mkdir(parents=True, exist_ok=True)
    made = any(CACHE.glob("vllm/*/ready"))
    free = shutil.disk_usage(CACHE).free / 2**30
    if not made and free < DISK_GIB:
        yield (
            f"{free:.0f} GiB free under {CACHE}, {DISK_GIB} are needed: make room, or choose "
            "another disk: export XDG_CACHE_HOME=DIRECTORY"
        )


def check() -> None:
    """Raises `PrerequisiteError` naming everything that is missing."""
    if found := tuple(problems()):
        raise PrerequisiteError("\n".join(found))


def install() -> None:
    """Installs the missing Debian packages; does nothing when there are none."""
    packages = missing_packages()
    if not packages or os.geteuid() != 0:
        return
    print(f"installing Debian packages: {' '.join(packages)}", file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
    ):
        subprocess.run(command, check=True, stdout=sys.stderr, env=environment)


if __name__ == "__main__":
    if "--install" in sys.argv[1:]:
        install()
    if found := tuple(problems()):
        sys.exit("\n".join(found))
