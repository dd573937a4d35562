"""Amounts as Kubernetes writes them: `500m`, `4`, `16Gi`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from speculative_operator.api.base import Rule, rules

QUANTITY_RULES = rules(
    Rule(
        "type(self) == int ? int(self) >= 0 : isQuantity(string(self))",
        "not a quantity; write for example 500m, 4, 16Gi",
    )
)

Quantity = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
    Field(max_length=32, json_schema_extra={"x-kubernetes-int-or-string": True, **QUANTITY_RULES}),
]
"""An amount as Kubernetes writes it: `500m`, `4`, `16Gi`."""

FORM: Final = re.compile(r"([+-]?[0-9.]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?")
SUFFIXES: Final[Mapping[str, Fraction]] = {
    "m": Fraction(1, 1000),
    **{name: Fraction(1000**power) for power, name in enumerate("kMGTPE", 1)},
    **{f"{name}i": Fraction(1024**power) for power, name in enumerate("KMGTPE", 1)},
}
GIB: Final = 2**30


def amount(text: str) -> Fraction | None:
    """What a quantity stands for; None for what is none."""
    match = FORM.fullmatch(text)
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix is None:
        return Fraction(number)
    if suffix in SUFFIXES:
        return Fraction(number) * SUFFIXES[suffix]
    return Fraction(number + suffix)
