#!/usr/bin/env python3
"""Makes the file system of the operator's image: `rootfs.py PACKAGES TARGET`.

Runs in a build stage, under the Python that the image will have. TARGET gets that interpreter, what
a server can use of its library, PACKAGES in /opt/operator, and the shared libraries that all of
these need: no shell, no package manager, no pip.
"""

from __future__ import annotations

import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

PYTHON = Path(sys.executable).resolve()
LIBRARY = Path(sysconfig.get_path("stdlib"))
PACKAGES = "opt/operator"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
UNUSED = shutil.ignore_patterns(
    "__pycache__", "config-*", "dist-packages", "distutils", "ensurepip", "idlelib", "lib2to3",
    "pydoc_data", "site-packages", "test", "tests", "tkinter", "turtledemo",
)  # fmt: skip
GENERATED = ("kubernetes/client/api", "kubernetes/aio/client/api")
"""A class for each group of the Kubernetes API, 50 MB: the operator has a client of its own."""
LOADED = (
    "aiohttp.web, kopf, kubernetes.aio.client, kubernetes.aio.config, prometheus_client.core, "
    "pydantic.alias_generators, pydantic.dataclasses"
)
"""What a start of the operator imports. Only that has bytecode: kubernetes alone has 800 modules
that nothing of ours uses."""
FILES = {
    "etc/passwd": "operator:x:65532:65532:operator:/tmp:/nonexistent\n",
    "etc/group": "operator:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def make(packages: Path, target: Path) -> None:
    """Fills the folder `target`, which is not there yet."""
    shutil.copytree(packages, target / PACKAGES, ignore=UNUSED)
    for folder in GENERATED:
        shutil.rmtree(target / PACKAGES / folder)
    shutil.copytree(LIBRARY, _inside(target, LIBRARY), ignore=UNUSED, symlinks=True)
    for file in (PYTHON, CERTIFICATES, *_libraries(target)):
        _place(file, target)
    (target / "bin").mkdir(exist_ok=True)
    (target / "bin" / "python").symlink_to(PYTHON)
    (target / "tmp").mkdir(mode=0o1777)
    for name, text in FILES.items():
        (target / name).write_text(text)
    _compile(target)


def _inside(target: Path, path: Path) -> Path:
    return target / path.relative_to("/")


def _place(file: Path, target: Path) -> None:
    """Copies what a path leads to, over any links, to that very path."""
    to = _inside(target, file)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file.resolve(), to)


def _libraries(target: Path) -> Iterator[Path]:
    """The shared libraries of the interpreter and of every extension, the loader among them."""
    binaries = (PYTHON, *sorted(target.rglob("*.so")))
    told = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"(/\S+) \(0x", told)}
    yield from (path for path in sorted(found) if not path.is_relative_to(target))


def _compile(target: Path) -> None:
    """Bytecode that depends on nothing but the source: no time, no order of a set."""
    listing = (
        "import sys; print(*(getattr(m, '__file__', '') for m in sys.modules.values()), sep='\\n')"
    )
    loaded = subprocess.run(
        [PYTHON, "-S", "-B", "-c", f"import {LOADED}; {listing}"],
        env={"PATH": os.defpath, "PYTHONPATH": str(target / PACKAGES)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in sorted(set(loaded.splitlines())):
        if not name.endswith(".py"):
            continue
        file = Path(name) if name.startswith(f"{target}/") else _inside(target, Path(name))
        py_compile.compile(
            str(file), dfile=f"/{file.relative_to(target)}", doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: rootfs.py PACKAGES TARGET")
    make(*map(Path, sys.argv[1:]))
