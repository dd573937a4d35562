"""What every model of the API shares: frozen values, camelCase on the wire, and CEL rules.

A rule stands next to the fields that it guards: `rules(Rule(…), …)` in a model's `model_config` or
in a field's `json_schema_extra`. `api.schema` carries them into the CRD, so the API server refuses
a broken object at apply, in the rule's words.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "speculation.dev"
VERSION = "v1alpha1"
KIND = "SpeculativeModel"
PLURAL = "speculativemodels"

LONGEST_PROPOSAL = 64
MOST_REQUESTS = 1024
MOST_GPUS = 64


class Why(StrEnum):
    """What kubectl prints before the message: `Invalid value`, `Required value` or `Forbidden`."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    FORBIDDEN = "FieldValueForbidden"


class Rule(NamedTuple):
    """A CEL expression and what the user reads when it is false."""

    expression: str
    message: str
    """What is wrong and what to write instead, with `%d` and `%s` where `values` go."""
    values: tuple[str, ...] = ()
    """CEL for what of the object the message tells; cheaper than `+`, whose cost has no bound."""
    field: str = ""
    """The field to name, from where the rule stands: `.draft`; empty for the whole value."""
    why: Why = Why.INVALID

    def wire(self) -> dict[str, str]:
        """One entry of `x-kubernetes-validations`."""
        told = f"{json.dumps(self.message)}.format([{', '.join(self.values)}])"
        return {
            "rule": self.expression,
            **({"messageExpression": told} if self.values else {"message": self.message}),
            "reason": self.why.value,
            **({"fieldPath": self.field} if self.field else {}),
        }


def rules(*wanted: Rule) -> dict[str, Any]:
    """Schema extras that make the API server refuse what breaks one of the rules."""
    return {"x-kubernetes-validations": [rule.wire() for rule in wanted]}


LIST_IS_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
"""The API server refuses duplicates; lists without a type are atomic."""


def list_by(key: str) -> dict[str, Any]:
    """Schema extras of a list whose entries are told apart by one field."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class ApiModel(BaseModel):
    """A frozen section of the resource. Unknown fields are ignored: a newer CRD may have them."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore"
    )


ProposalLength = Annotated[
    int,
    Field(
        ge=1,
        le=LONGEST_PROPOSAL,
        json_schema_extra=rules(
            Rule(
                "self >= 1",
                "a proposal length is 1 or more: 0, plain decoding, is always possible and never "
                "listed; for plain decoding alone write method: none",
            )
        ),
    ),
]
"""K: draft tokens proposed a step. 0, plain decoding, is always possible and never listed."""

LengthOrNone = Annotated[int, Field(ge=0, le=LONGEST_PROPOSAL)]
"""A proposal length where 0, plain decoding, may be written too."""

BatchSize = Annotated[int, Field(ge=1, le=MOST_REQUESTS)]
"""Requests scheduled in one step."""

GpuCount = Annotated[int, Field(ge=1, le=MOST_GPUS)]

ObjectName = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
"""The name of another Kubernetes object."""

LabelKey = Annotated[str, Field(min_length=1, max_length=317)]
LabelValue = Annotated[str, Field(max_length=63)]
