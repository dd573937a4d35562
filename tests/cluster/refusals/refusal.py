"""One refusal: a change to a sound spec, the words that kubectl prints, an accepted neighbour."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Change = Mapping[str, Any]

BASE: Change = {
    "model": {"source": "hf://Qwen/Qwen3-8B"},
    "speculation": {"method": "eagle3", "draft": {"source": "hf://org/draft"}},
    "accelerator": {"products": ["MI300X"]},
}

METHOD = "speculation.method"
DRAFT = "speculation.draft"
LENGTHS = "speculation.proposalLength"
OPTIONS = "speculation.options"
NO_DRAFT: Change = {DRAFT: None}


@dataclass(frozen=True)
class Refusal:
    """What is changed, the words (a regular expression), and what is accepted right beside it."""

    name: str
    refused: Change
    words: str
    accepted: Change = field(default_factory=dict)


def spec(change: Change) -> dict[str, Any]:
    """The sound spec with values at dotted paths replaced; None takes a field out."""
    result: dict[str, Any] = copy.deepcopy(dict(BASE))
    for path, value in change.items():
        *parents, last = path.split(".")
        place = result
        for part in parents:
            place = place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return result
