"""Pages typed into a shell as a reader would, and what the shell answers to each block."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.pages import CHECKOUT, Block, blocks

BEGIN = "@@ "
RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
LIMIT = 150.0
"""Seconds for a page."""

STRICT = "set -euo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
"""The first command that fails is the last, and nothing runs on behind the page."""

Words = tuple[str, ...]


@dataclass(frozen=True)
class Typed:
    """A page that was typed to its end: what came to standard output, by block."""

    answers: Mapping[Block, str]

    def differences(self) -> list[str]:
        """What the page shows as answers and the shell did not print, where it shows any."""
        return [
            f"{block.page.name}:{block.line}: {' '.join(words)}"
            for block, printed in self.answers.items()
            if block.language == "console"
            for words in sorted(shape(block.shown) - shape(printed))
        ]

    def text(self) -> str:
        return "".join(self.answers.values())


def typed(page: Path, folder: Path, *, timeout: float = LIMIT, **variables: str) -> Typed:
    """Types the blocks of a page that are marked `run` into one shell, in their order.

    `folder` is where a reader stands: see `checkout_in`. A command that fails ends it, and the
    test, with all that was printed.
    """
    run = [block for block in blocks(page) if block.mark == "run"]
    script = "".join(
        f"printf '\\n{BEGIN}{number}\\n'\n{block.typed}" for number, block in enumerate(run)
    )
    shell = subprocess.Popen(
        ["bash", "-c", STRICT + script],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, complaint = shell.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as late:
        # What it has put into the background, too, which would hold its ports.
        os.killpg(shell.pid, signal.SIGKILL)
        raise AssertionError(f"{page.name} after {timeout:g} s:\n{late.stdout!r}") from late
    assert shell.returncode == 0, f"{page.name}:\n{printed}\n{complaint}"
    # An answer may end without a newline.
    _, *parts = re.split(rf"\n{BEGIN}\d+\n", printed)
    return Typed(dict(zip(run, parts, strict=True)))


def checkout_in(folder: Path) -> Path:
    """A folder that looks like the checkout; what is written into it stays out of the checkout."""
    for path in CHECKOUT.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def shape(answer: str) -> frozenset[Words]:
    """Of an answer what is the same whatever was measured: columns, headings and labels.

    A table that begins with its columns in capitals has nothing else. Elsewhere columns stand above
    a rule; headings are lines at the margin without a digit that begin with a capital; labels stand
    at the margin before a colon or two spaces.
    """
    lines = answer.splitlines()
    if lines and _is_capitals(lines[0]):
        return frozenset({tuple(lines[0].split())})
    return frozenset(
        words
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if (words := _columns(line, below) or _label(line) or _heading(line))
    )


def _columns(line: str, below: str) -> Words:
    ruled = below.strip() != "" and set(below.strip()) == {RULE}
    return tuple(line.split()) if ruled and not _digits(line) else ()


def _label(line: str) -> Words:
    found = re.match(r"([A-Za-z][A-Za-z ]*[A-Za-z])(?::| {2})", line)
    return tuple(found[1].split()) if found else ()


def _heading(line: str) -> Words:
    return tuple(line.split()) if re.match(r"[A-Z]", line) and not _digits(line) else ()


def _is_capitals(line: str) -> bool:
    return line.isupper() and len(line.split()) > 1


def _digits(line: str) -> bool:
    return re.search(r"\d", line) is not None
