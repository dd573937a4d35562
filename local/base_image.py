"""The file system of the Python base image, by debootstrap from the mirror that apt itself uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from local.locks import alone
from local.paths import CACHE, content_key
from local.waiting import say

SUITE = "bookworm"
PACKAGES = (
    "python3",
    "python3-pip",
    "python3-venv",
    "ca-certificates",
    "busybox-static",  # for the pause image
    "libnuma1",  # for vLLM on the CPU, and libgomp1 for its numba
    "libgomp1",
)
# Not needed in a pod: half of the size.
DROPPED = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)
PYTHON_NAMES = ("python", "python3", "python3.11")
PIP_NAMES = ("pip", "pip3")


def key() -> str:
    """Changes with what is asked of the image, not with the day of its making."""
    return content_key((), SUITE, *PACKAGES, "-", *DROPPED)


def archive() -> Path:
    """The folder with `base.tar`, made when it is not there yet."""
    folder = CACHE / "base" / key()
    with alone(folder):
        if not (folder / "base.tar").exists():
            _make(folder / "base.tar")
    return folder


def _make(archive: Path) -> None:
    say("making the Python base image with debootstrap, about 2 minutes")
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        root = Path(scratch) / "root"
        _bootstrap(root)
        _shape(root)
        made = Path(scratch) / "base.tar"
        subprocess.run(
            ["tar", "--numeric-owner", "--one-file-system", "-C", root, "-cf", made, "."],
            check=True,
        )
        made.replace(archive)


def _mirror() -> str:
    """The mirror that apt's own sources name for the suite."""
    answer = subprocess.run(
        [
            "apt-get", "indextargets", "--format", "$(REPO_URI)",
            "Created-By: Packages", f"Codename: {SUITE}", "Component: main",
        ],
        check=True,
        capture_output=True,
        text=True,
    )  # fmt: skip
    mirrors = answer.stdout.split()
    if not mirrors:
        raise RuntimeError(
            f"apt names no mirror for Debian {SUITE} main: add one to its sources, "
            "then run: apt-get update"
        )
    return mirrors[0]


def _bootstrap(root: Path) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    subprocess.run(
        [*command, SUITE, root, _mirror()], check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )


def _shape(root: Path) -> None:
    """Makes it look like the official image: Python's names, and a pip that installs anywhere."""
    for folder in DROPPED:
        shutil.rmtree(root / folder, ignore_errors=True)
    for name in PYTHON_NAMES:
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3.11")
    for name in PIP_NAMES:
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/pip3")
    (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink()
