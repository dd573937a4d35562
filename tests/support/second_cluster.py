"""A second checkout with a cluster of its own beside the first one, as another user has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.paths import CHECKOUT


@dataclass(frozen=True)
class SecondCluster:
    """The cluster of a copy of `local/` in the folder `checkout`."""

    checkout: Path

    def __call__(self, *arguments: str) -> str:
        """One call of `python -m local.cluster` there; its output."""
        done = subprocess.run(
            [sys.executable, "-m", "local.cluster", *arguments],
            cwd=self.checkout,
            env={name: value for name, value in os.environ.items() if name != "SPM_STATE"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, program: str) -> str:
        """What a Python program prints that imports the copy's modules."""
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.checkout,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def inside(
        self, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> str:
        """What a command of the first checkout prints inside of the second one's network."""
        variables = (f"{name}={value}" for name, value in (environment or {}).items())
        return self("enter", "--", "env", f"--chdir={CHECKOUT}", *variables, *command)


@contextmanager
def second_cluster(checkout: Path) -> Iterator[SecondCluster]:
    """Up for as long as the body runs."""
    shutil.copytree(
        CHECKOUT / "local", checkout / "local", ignore=shutil.ignore_patterns("__pycache__")
    )
    cluster = SecondCluster(checkout)
    cluster("up")
    try:
        yield cluster
    finally:
        cluster("down")
