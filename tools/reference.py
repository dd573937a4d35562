"""The reference page of the resource, made from the CRD and the conditions of `api/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from speculative_operator.api.conditions import (
    ALWAYS_PRESENT,
    REASONS,
    ConditionType,
    EventReason,
    Explained,
)
from speculative_operator.api.reserved import (
    CONFIG_ADVICE,
    RESERVED_FLAGS,
    RESERVED_VARIABLE_PREFIX,
    RESERVED_VARIABLES,
    SPECULATION_ADVICE,
    VARIABLE_ADVICE,
)
from speculative_operator.api.status import WhyNot

Node = Mapping[str, Any]

INTRODUCTION = """\
# SpeculativeModel

Every field of `speculation.dev/v1alpha1`, `kind: SpeculativeModel` (short name `spm`).
The same words stand in `kubectl explain spm.spec`.
A section that is absent means all its defaults.
Under each section stands what the API server refuses, in its words; `…` is a value of the object.
"""

SCALE = """\
## Scale

`kubectl scale spm/NAME --replicas=N` and autoscalers set `spec.replicas` through `/scale`.
"""


def reference(crd: Node) -> str:
    """The page as Markdown."""
    (version,) = crd["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    parts = [
        INTRODUCTION,
        *_section("spec", properties["spec"]),
        SCALE,
        _columns(version["additionalPrinterColumns"]),
        _reserved(),
        *_section("status", properties["status"]),
        *_conditions(),
    ]
    return "\n".join(parts)


def _section(path: str, node: Node) -> Iterator[str]:
    """One object: its fields, what is refused, then the objects inside it."""
    required = set(node.get("required", ()))
    rows = [
        _row(f"`{name}`", _kind(field), _default(name, field, required), _told(field))
        for name, field in node["properties"].items()
    ]
    head = _row("field", "type", "default", "meaning") + "\n" + _row(*["---"] * 4)
    yield "\n".join([f"## {path}\n", f"{node['description']}\n", head, *rows, ""])
    refused = [*_refused("", node)]
    for name, field in node["properties"].items():
        if "properties" not in field and "properties" not in field.get("items", {}):
            refused += _refused(f".{name}", field)
            refused += _refused(f".{name}[]", field.get("items") or {})
            refused += _refused(f".{name}.*", field.get("additionalProperties") or {})
        elif "properties" in field.get("items", {}):
            refused += _refused(f".{name}", field)
    if refused:
        yield "\n".join(["Refused:\n", *refused, ""])
    for name, field in node["properties"].items():
        if "properties" in field:
            yield from _section(f"{path}.{name}", field)
        elif "properties" in field.get("items", {}):
            yield from _section(f"{path}.{name}[]", field["items"])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _told(field: Node) -> str:
    """The description and the limits."""
    limits = [
        f"{words} {field[key]}"
        for key, words in (
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("minItems", "entries: at least"),
            ("maxItems", "entries: at most"),
            ("maxProperties", "entries: at most"),
        )
        if key in field
    ]
    said = str(field.get("description", ""))
    return said + (f" ({', '.join(limits)})" if limits else "")


def _kind(field: Node) -> str:
    """The type in a word; for a choice, the choices."""
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field["type"] == "array":
        return f"list of {_kind(field['items'])}"
    if isinstance(field.get("additionalProperties"), Mapping):
        return f"map to {_kind(field['additionalProperties'])}"
    return str(field["type"])


def _default(name: str, field: Node, required: Iterable[str]) -> str:
    if name in required:
        return "required"
    return (
        f"`{str(field['default']).lower()}`"
        if isinstance(field.get("default"), bool)
        else (f"`{field['default']}`" if "default" in field else "")
    )


def _refused(at: str, node: Node) -> Iterator[str]:
    """The rules that stand at a node, as list items."""
    for rule in node.get("x-kubernetes-validations", ()):
        where = at + rule.get("fieldPath", "")
        message = rule.get("message") or _template(rule["messageExpression"])
        yield f"- `{where.lstrip('.')}`: {message}" if where else f"- {message}"


def _template(expression: str) -> str:
    """The words of a message expression `"…".format([…])`."""
    words: str = expression.rsplit('".format([', 1)[0].removeprefix('"')
    return words.replace("%d", "…").replace("%s", "…")


def _columns(columns: Iterable[Node]) -> str:
    head = _row("column", "shows", "") + "\n" + _row("---", "---", "---")
    rows = [
        _row(column["name"], f"`{column['jsonPath']}`", "`-o wide`" * column.get("priority", 0))
        for column in columns
    ]
    return "\n".join(["## kubectl get spm\n", head, *rows, ""])


def _reserved() -> str:
    flags = [_row(f"`{flag}`", advice) for flag, advice in RESERVED_FLAGS]
    variables = [f"- `{name}`" for name in (*RESERVED_VARIABLES, f"{RESERVED_VARIABLE_PREFIX}…")]
    return "\n".join(
        [
            "## What runtime may not set\n",
            f"Every spelling of vLLM's speculative flags: {SPECULATION_ADVICE}.",
            f"`--config`: {CONFIG_ADVICE}.",
            "The flags below, with underscores, with `=`, with `.key`, and shortened.\n",
            _row("flag", "why, or what instead"),
            _row("---", "---"),
            *flags,
            f"\nVariables; {VARIABLE_ADVICE}:\n",
            *variables,
            "",
        ]
    )


def _conditions() -> Iterator[str]:
    yield "## Conditions\n"
    yield "\n".join(
        [
            "The first five are always present; True is good (for Progressing it is neither).",
            "Reconciling and Stalled are present only while True, with another one's reason.",
            "",
            _explained("condition", ConditionType),
        ]
    )
    for condition in ALWAYS_PRESENT:
        yield f"### {condition}\n"
        yield _explained("reason", REASONS[condition])
    yield "## Why not another length\n"
    yield _explained("reason", WhyNot)
    yield "## Events\n"
    yield _explained("reason", EventReason)


def _explained(kind: str, names: Iterable[Explained]) -> str:
    rows = [_row(f"`{name.value}`", name.meaning) for name in names]
    return "\n".join([_row(kind, "meaning"), _row("---", "---"), *rows, ""])
