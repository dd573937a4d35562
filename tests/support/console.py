"""The console script as a user has it: the package installed, kubectl beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from local import binaries

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class InstalledCli:
    """`kubectl speculation` from the virtual environment that the package was installed into."""

    folder: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs it in a pipe, with kubectl's own search for plugins."""
        path = f"{self.folder / 'bin'}{os.pathsep}{binaries.folder()}{os.pathsep}/usr/bin"
        return subprocess.run(
            [binaries.folder() / "kubectl", "speculation", *arguments],
            env={
                "PATH": path,
                "KUBECONFIG": str(self.kubeconfig),
                "HOME": str(self.folder),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def install_cli(folder: Path, kubeconfig: Path) -> InstalledCli:
    """Installs this checkout as pip and pipx do, into a fresh virtual environment.

    Nothing is downloaded: what the package says that it needs is found among our own packages, and
    pip refuses if something is not there.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (ours,) = folder.glob("lib/python3*/site-packages")
    (ours / "developer.pth").write_text(sysconfig.get_path("purelib"))
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install"]
    offline = ["--quiet", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, *offline, f"{CHECKOUT}[cli]"], check=True, capture_output=True)
    return InstalledCli(folder, kubeconfig)
