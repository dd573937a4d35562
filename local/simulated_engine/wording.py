"""The words of the simulated model: the same prompt always gets the same answer, whatever K is."""

from __future__ import annotations

import random
from collections.abc import Sequence

VOCABULARY = (
    "draft",
    "target",
    "token",
    "step",
    "batch",
    "accepts",
    "proposes",
    "checks",
    "one",
    "all",
)


def count_tokens(prompt: str | Sequence[object]) -> int:
    """A word is a token; a list is token ids. At least one."""
    return max(1, len(prompt.split() if isinstance(prompt, str) else prompt))


class Answer:
    """The text of one answer, word by word."""

    def __init__(self, prompt: str, speaker: str = "") -> None:
        """Another `speaker` says something else to the same prompt."""
        self._random = random.Random(f"{speaker}{prompt}")

    def next_words(self, count: int) -> str:
        """The next `count` words, each with the space before it."""
        return "".join(f" {self._random.choice(VOCABULARY)}" for _ in range(count))
