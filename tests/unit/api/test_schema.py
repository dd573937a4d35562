"""The CRD's schema: what the converter makes of the models, and what holds for every field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import Field

from speculative_operator.api.base import ApiModel, Rule, list_by, rules
from speculative_operator.api.schema import custom_resource_definition, structural
from tools.generate import CHECKOUT, files

Node = Mapping[str, Any]


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Inner(ApiModel):
    """Something inside."""

    size: int = Field(default=3, description="How large.")


class Outer(ApiModel):
    """Something
    outside."""

    inner: Inner = Field(default=Inner(), description="What is inside.")
    maybe: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Perhaps.")
    colour: Colour = Colour.RED
    names: tuple[Annotated[str, Field(max_length=8)], ...] = Field(default=(), max_length=4)
    parts: tuple[Inner, ...] = Field(default=(), json_schema_extra=list_by("size"))
    labels: Mapping[str, Annotated[str, Field(max_length=9)]] = Field(default_factory=dict)
    amount: Annotated[str, Field(json_schema_extra={"x-kubernetes-int-or-string": True})] = "1"
    checked: int = Field(default=1, json_schema_extra=rules(Rule("self > 0", "write 1")))


@pytest.fixture(scope="module")
def properties() -> Node:
    found: Node = structural(Outer, "validation")["properties"]
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "inner",
            {
                "type": "object",
                "description": "What is inside.",
                "properties": {
                    "size": {"type": "integer", "default": 3, "description": "How large."}
                },
            },
        ),
        ("maybe", {"type": "integer", "minimum": 1, "description": "Perhaps."}),
        (
            "colour",
            {
                "type": "string",
                "enum": ["red", "blue"],
                "default": "red",
                "description": "A colour.",
            },
        ),
        (
            "names",
            {
                "type": "array",
                "maxItems": 4,
                "items": {"type": "string", "maxLength": 8},
                "x-kubernetes-list-type": "atomic",
            },
        ),
        (
            "labels",
            {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}},
        ),
        ("amount", {"x-kubernetes-int-or-string": True, "default": "1"}),
        (
            "checked",
            {
                "type": "integer",
                "default": 1,
                "x-kubernetes-validations": [
                    {"rule": "self > 0", "message": "write 1", "reason": "FieldValueInvalid"}
                ],
            },
        ),
    ],
)
def test_a_field_becomes_structural(properties: Node, name: str, expected: Node) -> None:
    """The API server takes no $ref, no anyOf with null, and no default of null."""
    assert properties[name] == expected


def test_a_list_can_be_a_map_by_a_field(properties: Node) -> None:
    """Then two writers can each own entries, and the same key twice is refused."""
    assert properties["parts"]["x-kubernetes-list-type"] == "map"
    assert properties["parts"]["x-kubernetes-list-map-keys"] == ["size"]


def test_a_description_is_one_line() -> None:
    """Docstrings are folded; kubectl folds again."""
    assert structural(Outer, "validation")["description"] == "Something outside."


def test_a_message_with_values_is_told_by_an_expression() -> None:
    """`format` has a bounded cost, which adding strings has not."""
    rule = Rule("self.a < self.b", "a %d, b %d", ("self.a", "self.b"), field=".a")

    assert rule.wire() == {
        "rule": "self.a < self.b",
        "messageExpression": '"a %d, b %d".format([self.a, self.b])',
        "reason": "FieldValueInvalid",
        "fieldPath": ".a",
    }


def nodes(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Every field of the schema below `node`, with its path."""
    for name, field in node.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from nodes(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), Mapping):
            yield f"{path}.{key}", node[key]
            yield from nodes(node[key], f"{path}.{key}")


def schema() -> Node:
    (version,) = custom_resource_definition()["spec"]["versions"]
    found: Node = version["schema"]["openAPIV3Schema"]
    return found


SPEC = [*nodes(schema()["properties"]["spec"], "spec")]
STATUS = [*nodes(schema()["properties"]["status"], "status")]


def test_every_field_says_what_it_means() -> None:
    """`kubectl explain` and the reference show nothing else."""
    silent = [
        path
        for path, field in (*SPEC, *STATUS)
        if "description" not in field and not path.endswith((".items", ".additionalProperties"))
    ]

    assert silent == []


def test_everything_a_user_writes_has_a_maximum() -> None:
    """Without one the API server refuses rules over it, and one object could fill etcd."""
    unbounded = []
    for path, field in SPEC:
        kind = field.get("type")
        bounded = {
            "array": "maxItems" in field,
            "string": "maxLength" in field or "enum" in field,
            "object": "properties" in field
            or "maxProperties" in field
            or field.get("x-kubernetes-preserve-unknown-fields", False),
            "integer": "maximum" in field or path.endswith("tolerationSeconds"),
        }
        if not bounded.get(kind or "", True):
            unbounded.append(path)

    assert unbounded == []


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_generated_files_are_as_the_models_say(path: Any) -> None:
    """A model that changed without `make generate` would be one thing here and another there."""
    assert path.read_text() == files()[path], "run: make generate"


def test_no_text_of_the_crd_reads_as_a_template() -> None:
    """The chart's copy goes through Helm's template engine."""
    text = files()[CHECKOUT / "crds" / "speculation.dev_speculativemodels.yaml"]

    assert "{{" not in text
