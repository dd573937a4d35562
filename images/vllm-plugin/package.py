#!/usr/bin/env python3
"""Makes the folder that a stock vLLM finds the plugin in: `package.py TARGET`.

TARGET, put on PYTHONPATH, gets the package and a `*.dist-info` with its entry point. That is what
the plugin's image copies into a pod, and what the tests use.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "live_speculation"
NAME = "live_speculation"


def make(target: Path) -> None:
    """Replaces the package in `target`; other things in it stay."""
    for old in (target / NAME, *target.glob(f"{NAME}-*.dist-info")):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(SOURCE, target / NAME, ignore=shutil.ignore_patterns("__pycache__"))
    version = _version()
    info = target / f"{NAME}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {NAME.replace('_', '-')}\nVersion: {version}\n"
        "Requires-Python: >=3.10\n"
    )
    (info / "entry_points.txt").write_text(
        f"[vllm.general_plugins]\n{NAME} = {NAME}.plugin:register\n"
    )


def _version() -> str:
    constants: dict[str, str] = {}
    exec((SOURCE / "__init__.py").read_text(), constants)  # noqa: S102 - two constants of our own
    return constants["__version__"]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: package.py TARGET")
    make(Path(sys.argv[1]))
