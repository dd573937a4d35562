"""Earlier states of the project: `python -m tests.support.earlier [COMMIT…]` builds their images.

It needs the commits in this clone, and a network that has packages: the cluster's has none, so it
comes before the tests. Commits are those of `tests/data/earlier_charts.txt` where none is named.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import buildah, images, install
from local.paths import CHECKOUT
from local.waiting import say

LISTED = CHECKOUT / "tests" / "data" / "earlier_charts.txt"
IMAGES = ("operator", "vllm-plugin", "simulated-engine")


@dataclass(frozen=True)
class Earlier:
    """The files of a commit, and the images that were built from them."""

    commit: str
    tree: Path

    @property
    def chart(self) -> Path:
        return self.tree / "charts" / "speculative-operator"

    @property
    def example(self) -> Path:
        return self.tree / "examples" / "local-simulated.yaml"

    def values(self) -> dict[str, Any]:
        """The chart's values that name its images."""
        return {
            "image": install.image(reference(self.commit, "operator")),
            "plugin": install.image(reference(self.commit, "vllm-plugin")),
        }


def listed() -> list[str]:
    """All commits whose chart may be installed somewhere."""
    lines = (line.partition("#")[0].split() for line in LISTED.read_text().splitlines())
    return [words[0] for words in lines if words]


def reference(commit: str, name: str) -> str:
    """The full name of an image of a commit."""
    return f"{images.REPOSITORY}/{name}:of-{commit}"


def is_built(commit: str) -> bool:
    """Whether all its images are there."""
    return all(buildah.manifest(reference(commit, name)) for name in IMAGES)


def checked_out(commit: str, folder: Path) -> Earlier | None:
    """The commit's files in `folder`; None where this clone has no such commit."""
    command = ["git", "-c", "safe.directory=*", "archive", commit]
    archived = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False)
    if archived.returncode:
        return None
    subprocess.run(["tar", "--extract", f"--directory={folder}"], input=archived.stdout, check=True)
    return Earlier(commit, folder)


def main(commits: Sequence[str]) -> None:
    for commit in commits or listed():
        with tempfile.TemporaryDirectory() as folder:
            earlier = checked_out(commit, Path(folder))
            if earlier is None:
                say(f"this clone has no commit {commit}: fetch all of its history")
                continue
            for name in IMAGES:
                images.build_from(earlier.tree, name, reference(commit, name))


if __name__ == "__main__":
    main(sys.argv[1:])
