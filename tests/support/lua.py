"""Argo CD's health script, run by a Lua of the same language version: 5.1, as Argo CD's own is."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = "lua5.1"
RUN = """
local allowed = {"ipairs", "next", "pairs", "select", "table", "tonumber", "tostring", "type"}
local globals = {obj = %s}
for _, name in ipairs(allowed) do globals[name] = _G[name] end
local health = setfenv(assert(loadfile(arg[1])), globals)()
io.write(health.status, "\\n", health.message)
"""
"""What Argo CD opens for a script: of the libraries, base and table; and the object as `obj`."""


@dataclass(frozen=True)
class ArgoHealth:
    """What Argo CD would show of an object."""

    status: str
    message: str


def argo_health(script: Path, manifest: dict[str, Any]) -> ArgoHealth:
    """What the script says of an object. A script that fails fails the test, in Lua's words."""
    done = subprocess.run(
        [PROGRAM, "-", script],
        input=RUN % _literal(manifest),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return ArgoHealth(*done.stdout.split("\n", 1))


def _literal(value: object) -> str:
    """A JSON value as Lua writes it."""
    match value:
        case dict():
            pairs = (f"[{_literal(key)}] = {_literal(each)}" for key, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list():
            return "{" + ", ".join(_literal(each) for each in value) + "}"
        case str():
            return '"' + "".join(_escaped(byte) for byte in value.encode()) + '"'
        case None:
            return "nil"
        case _:
            return json.dumps(value)


def _escaped(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in '"\\'
    return chr(byte) if plain else f"\\{byte:03}"
