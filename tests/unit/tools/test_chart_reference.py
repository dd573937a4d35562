"""The reference of the chart's values says of each what the file and its schema say."""

from __future__ import annotations

import json
from typing import Any

from tools import chart_reference
from tools.validate import CHART

SCHEMA: dict[str, Any] = {
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "image": {"$ref": "#/definitions/image"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "definitions": {
        "image": {
            "type": "object",
            "additionalProperties": False,
            "required": ["tag"],
            "properties": {"tag": {"type": "string"}, "pull": {"enum": ["Always", "Never"]}},
        }
    },
}
TEXT = """\
# How large
# it is.
size: 2

# What runs.
image:
  # Its | tag.
  tag: ""
  pull: Never

# Kept as they are.
labels:
  a: b
"""


def test_each_value_has_its_type_its_default_and_its_words() -> None:
    """A group has words alone; what the schema leaves free is one value."""
    rows = [value.row() for value in chart_reference.values(TEXT, SCHEMA)]

    assert rows == [
        "| `size` | integer, 1 to 9 | `2` | How large it is. |",
        "| `image` |  |  | What runs. |",
        '| `image.tag` | string | `""` | Its \\| tag. |',
        '| `image.pull` | `Always` or `Never` | `"Never"` |  |',
        '| `labels` | object | `{"a": "b"}` | Kept as they are. |',
    ]


def test_every_value_of_the_chart_is_there_and_is_explained() -> None:
    """`helm show values` is the page that people read."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = list(chart_reference.values((CHART / "values.yaml").read_text(), schema))

    assert {value.path[0] for value in found} == set(schema["properties"]) - {"global"}
    assert [value.path for value in found if not value.words] == []
