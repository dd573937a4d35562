"""The real kubectl, as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from local import binaries
from local.access import ClusterAccess
from tests.support.documents import documents


@dataclass(frozen=True)
class Answer:
    """What one call of kubectl came to."""

    done: bool
    output: str
    complaint: str


@dataclass(frozen=True)
class Kubectl:
    """kubectl against the selected cluster. Objects go in as dicts, as documents on its input."""

    access: ClusterAccess

    def attempt(self, *arguments: str, objects: tuple[Any, ...] = ()) -> Answer:
        """One call, whatever comes of it."""
        # The cluster's own kubectl first: its version is the API server's.
        path = f"{binaries.folder()}{os.pathsep}{os.environ['PATH']}"
        chosen = (f"--kubeconfig={self.access.kubeconfig}", f"--context={self.access.context}")
        program = shutil.which("kubectl", path=path)
        assert program is not None, "there is no kubectl: run: make setup"
        finished = subprocess.run(
            [program, *chosen, *arguments],
            input=documents(objects) if objects else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Answer(finished.returncode == 0, finished.stdout, finished.stderr)

    def __call__(self, *arguments: str, objects: tuple[Any, ...] = ()) -> str:
        """One call that must succeed; its output."""
        answer = self.attempt(*arguments, objects=objects)
        assert answer.done, f"kubectl {' '.join(arguments)}: {answer.complaint}"
        return answer.output
