"""Why an engine ended, told from its pod's status alone, and what that means. Pure.

The first sign that is found counts: what is certain goes before what is vague, and what passes by
itself before what looks like it and stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from speculative_operator.api.conditions import Reason
from speculative_operator.controller.seen.cause_classes import (
    MISFIT,
    NO_DRAFT,
    NO_MODEL,
    UNKNOWN,
    WEIGHTS,
    Cause,
    Part,
)
from speculative_operator.controller.seen.cause_signs import COMPILED, DRAFT_FRAME


@dataclass(frozen=True)
class Ending:
    """How a container ended: the kubelet's word for it, its exit code, and its termination message,
    which is the plugin's, or the end of its log."""

    reason: str = ""
    exit_code: int | None = None
    message: str = ""

    @property
    def text(self) -> str:
        """All of it, as signs are looked for."""
        return f"{self.reason} exit code {self.exit_code}\n{self.message}"

    @property
    def words(self) -> str:
        """For a user."""
        words = f"ended: {self.reason}, exit code {self.exit_code}"
        return f"{words}: {self.message}" if self.message else words


@dataclass(frozen=True)
class Speculation:
    """What the engine was asked to speculate with: vLLM's `--speculative-config`, {} for none."""

    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def draft(self) -> str | None:
        """The draft's checkpoint as vLLM was given it."""
        return self.config.get("model")


SPECULATIVE_PARTS: Final = frozenset({Part.SPECULATION, Part.EITHER})
BACKEND_OPTIONS: Final = ("attention_backend", "moe_backend")
"""Options that a text may name by their value."""


def cause_of(ending: Ending, speculation: Speculation) -> Cause:
    """The class of an ending, with the part that fails where the text tells it."""
    found = next((cause for cause, sign in COMPILED if sign.search(ending.text)), UNKNOWN)
    if not speculation.config:
        return replace(found, part=Part.TARGET)
    if found is NO_MODEL and speculation.draft and speculation.draft in ending.text:
        return NO_DRAFT
    if found is WEIGHTS and re.search(DRAFT_FRAME, ending.text, re.MULTILINE):
        return MISFIT
    told = found.reason in (Reason.CONFIGURATION_REFUSED, Reason.KERNEL_FAULT)
    if found.part in SPECULATIVE_PARTS and told:
        option = _option(ending.message, speculation.config)
        return found if option is None else replace(found, part=Part.SPECULATION, option=option)
    return found


def _option(message: str, config: Mapping[str, Any]) -> str | None:
    """The one of the options in use that a text speaks of; the longest words that it has."""
    said = _plain(message)
    words = {
        word: name
        for name, value in config.items()
        if name not in NEEDED
        for word in _words(name, value)
    }
    return max(((w, words[w]) for w in words if w in said), key=_length, default=("", None))[1]


def _length(found: tuple[str, str | None]) -> int:
    return len(found[0])


def _words(name: str, value: object) -> tuple[str, ...]:
    """By what a text may call an option."""
    named = _plain(name).removeprefix("enable ")
    return (named, _plain(str(value))) if name in BACKEND_OPTIONS else (named,)


NEEDED: Final = frozenset(
    {
        "method",
        "model",
        "revision",
        "quantization",
        "num_speculative_tokens",
        "num_speculative_tokens_per_batch_size",
    }
)
"""Parts of the config that are no options: without them there is no speculation."""


def _plain(text: str) -> str:
    return text.lower().replace("_", " ")
