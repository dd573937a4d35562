"""Last words of engines, as the kubelet has them: `tests/data/endings`, one file an end."""

from __future__ import annotations

from local.paths import CHECKOUT
from speculative_operator.controller.seen.causes import Ending

FOLDER = CHECKOUT / "tests" / "data" / "endings"


def words(name: str) -> str:
    """The termination message."""
    return (FOLDER / f"{name}.txt").read_text().strip()


def ending(name: str) -> Ending:
    """A container that ended so, with exit code 1, or as argparse does with 2."""
    return Ending("Error", 2 if name == "unknown-flag" else 1, words(name))
