"""The commands of a piece of shell, parsed by shfmt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHFMT = Path(sys.executable).with_name("shfmt")
UNKNOWN = "\N{HORIZONTAL ELLIPSIS}"
"""Stands in a word for what only the running shell knows: a variable, another command's answer."""

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """One simple command: its program and the other words."""

    program: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.program, *self.words))

    @property
    def flags(self) -> tuple[str, ...]:
        """Words before `--` that begin with a dash, without their values."""
        ours = self.words[: self.words.index("--")] if "--" in self.words else self.words
        dashed = (word for word in ours if word.startswith("-") and word != "-")
        return tuple(word.partition("=")[0] for word in dashed)


def commands(text: str) -> tuple[Command, ...]:
    """All of them, those in pipes and `$(…)` too, without calls of the text's own functions.

    Raises ValueError with shfmt's words for what is no shell.
    """
    done = subprocess.run(
        [SHFMT, "--language-dialect=bash", "--to-json"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr.strip())
    nodes = tuple(_nodes(json.loads(done.stdout)))
    own = {node["Name"]["Value"] for node in nodes if node.get("Type") == "FuncDecl"}
    calls = (
        tuple(map(_word, node["Args"]))
        for node in nodes
        if node.get("Type") == "CallExpr" and node.get("Args")
    )
    return tuple(Command(call[0], call[1:]) for call in calls if call[0] not in own)


def _nodes(value: object) -> Iterator[Node]:
    """Every node below a value, from the outside in."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _nodes(inner)


def _word(node: Node) -> str:
    return "".join(map(_part, node["Parts"]))


def _part(part: Node) -> str:
    if part["Type"] == "DblQuoted":
        return "".join(map(_part, part.get("Parts", ())))
    return str(part["Value"]) if part["Type"] in {"Lit", "SglQuoted"} else UNKNOWN
