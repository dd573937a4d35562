"""The console script as a user has it: the package installed, kubectl beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from local import binaries
from local.access import ClusterAccess

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class InstalledCli:
    """`kubectl speculation` from a folder that the package was installed into."""

    folder: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs it in a pipe, with kubectl's own search for plugins."""
        path = f"{self.folder / 'bin'}{os.pathsep}{binaries.folder()}{os.pathsep}/usr/bin"
        return subprocess.run(
            [binaries.folder() / "kubectl", "speculation", *arguments],
            env={
                "PATH": path,
                "PYTHONPATH": str(self.folder),
                "KUBECONFIG": str(self.kubeconfig),
                "HOME": str(self.folder),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def install_cli(folder: Path, cluster: ClusterAccess) -> InstalledCli:
    """Builds the wheel of this checkout and installs it, without its dependencies."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--target", str(folder), str(CHECKOUT)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return InstalledCli(folder, cluster.kubeconfig)
