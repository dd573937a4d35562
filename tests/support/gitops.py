"""The Go program of `local/gitops`, which does what Flux does, and git repositories for it."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import binaries
from local.access import ClusterAccess
from tests.support.api import until
from tests.support.documents import documents

AGENT = "kustomize-controller"
"""Its user agent, as Flux's."""

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Kstatus:
    """What kstatus says of an object: Current, InProgress, Failed or Terminating."""

    object: str
    status: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """One reconciliation, in the words of a Flux Kustomization's condition Ready."""

    revision: str
    ready: bool
    reason: str
    message: str
    changed: tuple[str, ...]
    """What was sent, as `kind/namespace/name verb`."""
    unhealthy: tuple[Kstatus, ...]
    """Why it is not ready, where objects are the reason."""

    @classmethod
    def read(cls, line: str) -> Outcome:
        found = json.loads(line)
        found["changed"] = tuple(found["changed"])
        found["unhealthy"] = tuple(Kstatus(**each) for each in found["unhealthy"])
        return cls(**found)


class Repository:
    """A git repository of manifests: what is committed is what should be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._git("init", "--quiet", "--initial-branch=main")

    def commit(self, **files: Iterable[Manifest]) -> str:
        """Files by their names without `.yaml`; the hash of the commit."""
        for name, manifests in files.items():
            (self.folder / f"{name}.yaml").write_text(documents(manifests))
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message=Change")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        author = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        command = ["git", "-C", str(self.folder), *author, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Flux:
    """A running reconciliation of a repository."""

    def __init__(self, lines: Path, process: subprocess.Popen[bytes]) -> None:
        self._lines = lines
        self._process = process

    def outcomes(self) -> list[Outcome]:
        """All reconciliations that have ended, oldest first."""
        assert self._process.poll() is None, "gitops has ended"
        whole = self._lines.read_text().rpartition("\n")[0]
        return [Outcome.read(line) for line in whole.splitlines()]

    def wait(
        self, what: str, holds: Callable[[Outcome], bool], *, after: int = 0, timeout: float = 60
    ) -> Outcome:
        """The first reconciliation that is so, of those beyond the first `after`."""
        return until(
            what,
            lambda: next((each for each in self.outcomes()[after:] if holds(each)), None),
            timeout=timeout,
        )

    def wait_ready(self, commit: str, timeout: float = 60) -> Outcome:
        """The first one that calls a commit ready."""
        ready = self.wait(
            "the commit is ready",
            lambda each: each.revision == commit and each.ready,
            timeout=timeout,
        )
        assert ready.reason == "ReconciliationSucceeded"
        return ready

    def wait_more(self, count: int, timeout: float) -> list[Outcome]:
        """So many reconciliations from now on; the one that goes on is not counted."""
        before = len(self.outcomes()) + 1
        until(
            f"{count} more reconciliations",
            lambda: len(self.outcomes()) >= before + count,
            timeout=timeout,
        )
        return self.outcomes()[before : before + count]


@contextlib.contextmanager
def flux(
    access: ClusterAccess, repository: Repository, folder: Path, *, timeout: str = "30s"
) -> Iterator[Flux]:
    """Reconciles every second until the body is left. `timeout` is that of a health check."""
    command = [
        program(), "reconcile", f"--repository={repository.folder}",
        f"--kubeconfig={access.kubeconfig}", f"--context={access.context}",
        "--interval=1s", f"--timeout={timeout}",
    ]  # fmt: skip
    lines = folder / "outcomes.jsonl"
    with lines.open("wb") as out, subprocess.Popen(command, stdout=out) as process:
        try:
            yield Flux(lines, process)
        finally:
            process.terminate()


def kstatus(manifests: Iterable[Manifest]) -> tuple[Kstatus, ...]:
    """What kstatus's own library says of objects as they are."""
    answer = _call("status", documents(manifests))
    assert answer.returncode == 0, answer.stderr
    return tuple(Kstatus(**json.loads(line)) for line in answer.stdout.splitlines())


def refused(text: str) -> str | None:
    """What Flux's Go types have against manifests of Flux's kinds; None where nothing."""
    answer = _call("check", text)
    return answer.stderr.strip() if answer.returncode else None


def program() -> str:
    """Where it is built; without it the test fails and says how to build it."""
    found = binaries.folder(binaries.GITOPS) / "gitops"
    assert found.exists(), "there is no gitops: run: make setup"
    return str(found)


def _call(command: str, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), command], input=text, capture_output=True, text=True, check=False, timeout=30
    )
