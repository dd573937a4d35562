"""The reference of the chart's values, from `values.yaml` and its schema.

A value is explained by the comment above it: whole lines, without a gap. Its default is what the
file says, its type and limits are the schema's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

KEY = re.compile(r"(?P<indent> *)(?P<name>\w+):(?P<rest>.*)")
COMMENT = re.compile(r" *# ?(?P<words>.*)")
STEP = 2
"""Spaces by which the file indents."""

Schema = Mapping[str, Any]

HEAD = """\
# The chart's values

`helm show values charts/speculative-operator` prints them with the same words.
A value that is not listed here, or does not fit, is refused before anything is installed.
Rendered manifests are checked against the schemas of Kubernetes {oldest} to {newest}; the chart
refuses an older one.

| value | type | default | meaning |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Value:
    """One line of the table. `default` is None where a value only groups others."""

    path: tuple[str, ...]
    words: str
    type: str
    default: str | None

    def row(self) -> str:
        default = "" if self.default is None else f"`{self.default}`"
        cells = (f"`{'.'.join(self.path)}`", self.type, default, self.words)
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def reference(text: str, schema: Schema, versions: tuple[str, ...]) -> str:
    """The page. `text` is that of values.yaml."""
    rows = "".join(f"{value.row()}\n" for value in values(text, schema))
    return HEAD.format(oldest=versions[0], newest=versions[-1]) + rows


def values(text: str, schema: Schema) -> Iterator[Value]:
    """Every value in the order of the file, and every group that is explained."""
    defaults = yaml.safe_load(text)
    words: list[str] = []
    path: tuple[str, ...] = ()
    for line in text.splitlines():
        if comment := COMMENT.fullmatch(line):
            words.append(comment["words"])
            continue
        key = KEY.fullmatch(line)
        depth = len(key["indent"]) // STEP if key is not None else 0
        if key is not None and depth <= len(path):
            at = (*path[:depth], key["name"])
            node = _node(schema, at)
            default = _at(defaults, at)
            if _groups(node, default):
                path = at
                if words:
                    yield Value(at, " ".join(words), "", None)
            elif _groups(_node(schema, at[:-1]), _at(defaults, at[:-1])):
                path = at[:-1]
                yield Value(at, " ".join(words), _type(node, schema), json.dumps(default))
        words = []


def _at(defaults: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - any YAML
    for name in path:
        defaults = defaults[name]
    return defaults


def _groups(node: Schema, default: object) -> bool:
    """Whether a value only holds others, which have a meaning each."""
    return "properties" in node and bool(default)


def _node(schema: Schema, path: tuple[str, ...]) -> Schema:
    """What the schema says at a path; {} inside of what it leaves free."""
    node = schema
    for name in path:
        node = _resolved(node.get("properties", {}).get(name, {}), schema)
    return node


def _resolved(node: Schema, schema: Schema) -> Schema:
    while "$ref" in node:
        node = schema["definitions"][node["$ref"].rpartition("/")[2]]
    return node


def _type(node: Schema, schema: Schema) -> str:
    """In words: `integer, 1 to 10`, `list of string`, `"debug" or "info"`."""
    node = _resolved(node, schema)
    if "enum" in node:
        return " or ".join(f"`{choice}`" for choice in node["enum"])
    if "anyOf" in node:
        kinds = (_resolved(one, schema).get("type") for one in node["anyOf"])
        return " or ".join(kind for kind in kinds if kind)
    if node["type"] == "array":
        return f"list of {_type(node['items'], schema)}"
    limits = [str(node[limit]) for limit in ("minimum", "maximum") if limit in node]
    if len(limits) == len(("minimum", "maximum")):
        return f"{node['type']}, {limits[0]} to {limits[1]}"
    return f"{node['type']}, at least {limits[0]}" if "minimum" in node else str(node["type"])
