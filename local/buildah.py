"""Builds images into a store of this project's own in the cache folder, with buildah.

Runs in a mount namespace of its own, since buildah leaves mounts behind, and one at a time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.locks import alone
from local.paths import CACHE, LOCAL

STORE = CACHE / "images"
LAYOUT = STORE / "oci"  # every built image, in the OCI layout: blobs are shared between images
IGNORED = LOCAL / "images.ignore"


def _buildah(*arguments: str, run_root: str) -> str:
    store = ["--root", str(STORE / "storage"), "--runroot", run_root, "--storage-driver", "overlay"]
    unshare = ["unshare", "--mount", "--propagation", "private"]
    done = subprocess.run(
        [*unshare, "buildah", *store, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"buildah {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def pip_settings() -> str:
    """A pip.conf with the settings of this machine's pip, for `RUN pip install`."""
    answer = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    wanted = ("cert", "index-url", "extra-index-url", "trusted-host", "timeout", "default-timeout")
    found = dict(re.findall(r"^(?:global|:env:)\.([a-z-]+)='(.*)'$", answer, re.MULTILINE))
    lines = [f"{name} = {value}" for name, value in found.items() if name in wanted]
    return "\n".join(["[global]", "root-user-action = ignore", *lines, ""])


def build(
    dockerfile: Path,
    context: Path,
    reference: str,
    aliases: Mapping[str, str],
    *,
    afresh: bool = False,
) -> None:
    """Builds and exports one image; network only for its RUN lines.

    `aliases` says which image of the store a name in a FROM line stands for. `afresh` uses nothing
    of an earlier build. All times in the image are 0, so the same files make the same digest.
    """
    with alone(STORE), tempfile.TemporaryDirectory() as scratch:
        run_root = f"{scratch}/run"
        settings = Path(scratch) / "pip.conf"
        settings.write_text(pip_settings())
        for alias, image in aliases.items():
            _buildah("tag", image, alias, run_root=run_root)
        _buildah(
            "bud", "--layers", *(["--no-cache"] if afresh else []), "--timestamp=0",
            "--isolation=chroot", "--pull=never", "--format=oci",
            f"--ignorefile={IGNORED}", "--volume=/etc/ssl/certs:/etc/ssl/certs:ro",
            f"--volume={settings}:/etc/pip.conf:ro", f"--file={dockerfile}",
            f"--tag={reference}", str(context),
            run_root=run_root,
        )  # fmt: skip
        _buildah(
            # Layers are compressed each time, known or not, so quickly.
            "push", "--compression-format=zstd", "--compression-level=1",
            reference, f"oci:{LAYOUT}:{reference}",
            run_root=run_root,
        )  # fmt: skip


def manifest(reference: str) -> dict[str, object] | None:
    """The descriptor of an exported image in the layout's index; None when it is not there."""
    index = LAYOUT / "index.json"
    if not index.exists():
        return None
    for descriptor in json.loads(index.read_text())["manifests"]:
        if descriptor.get("annotations", {}).get("org.opencontainers.image.ref.name") == reference:
            found: dict[str, object] = descriptor
            return found
    return None


def blob(digest: str) -> bytes:
    """A file of the layout by its digest."""
    return (LAYOUT / "blobs" / Path(*digest.split(":"))).read_bytes()


def read(reference: str) -> dict[str, Any]:
    """The manifest of an exported image. Raises LookupError when it is not there."""
    descriptor = manifest(reference)
    if descriptor is None:
        raise LookupError(f"{reference} was not built")
    found: dict[str, Any] = json.loads(blob(str(descriptor["digest"])))
    return found
