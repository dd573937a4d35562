"""Whether two revisions of a model give the same output: greedy continuations of fixed prompts.

Kernels differ in near ties, and from the first other token on two texts have nothing in common. So
only the first difference of a prompt is looked at, and it counts only where the running revision
was sure: where its best token was ahead of its second one by more than the tolerance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PROMPTS: Final = (
    "def fibonacci(n):\n    ",
    "The capital of France is",
    "1, 2, 3, 5, 8, 13,",
    "Once upon a time, in a small village by the sea,",
    '{"name": "Ada Lovelace", "born": 1815, "known_for": "',
    "Translate into German: Good morning, how are you?\n",
)
"""Code, a fact, numbers, prose, JSON and another language."""

LENGTH: Final = 32
"""Tokens of each continuation."""


@dataclass(frozen=True)
class Continuation:
    """Tokens as the engine names them, and at each the log-probability of the best one less that of
    the second best."""

    tokens: tuple[str, ...]
    gaps: tuple[float, ...]


def differs(reference: Continuation, other: Continuation, tolerance: float) -> bool:
    """Whether the first other token stands where the reference was sure."""
    pairs = zip(reference.tokens, other.tokens, reference.gaps, strict=False)
    gap = next((gap for mine, its, gap in pairs if mine != its), None)
    if gap is None:
        return len(reference.tokens) != len(other.tokens)
    return gap > tolerance


@dataclass(frozen=True)
class ReferenceOutput:
    """What the running revision answered, once and again; or in `missing` why that is not known."""

    first: tuple[Continuation, ...] = ()
    second: tuple[Continuation, ...] = ()
    missing: str = ""

    def to_json(self) -> str:
        """Compact: some 8 KiB, to be kept in an annotation."""
        if self.missing:
            return json.dumps({"missing": self.missing}, separators=(",", ":"))
        both = {"first": _plain(self.first), "second": _plain(self.second)}
        return json.dumps(both, separators=(",", ":"))

    @classmethod
    def read(cls, text: str | None) -> ReferenceOutput | None:
        """As it was written; None for anything else."""
        try:
            body = json.loads(text or "")
            return cls(
                first=_read(body.get("first", ())),
                second=_read(body.get("second", ())),
                missing=str(body.get("missing", "")),
            )
        except (ValueError, TypeError, AttributeError):
            return None


def _plain(continuations: Sequence[Continuation]) -> list[list[list[str | float]]]:
    return [
        [[token, round(gap, 2)] for token, gap in zip(each.tokens, each.gaps, strict=True)]
        for each in continuations
    ]


def _read(plain: Sequence[Sequence[tuple[str, float]]]) -> tuple[Continuation, ...]:
    return tuple(
        Continuation(tuple(str(token) for token, _ in each), tuple(float(gap) for _, gap in each))
        for each in plain
    )


@dataclass(frozen=True)
class Agreement:
    """Of `prompts`, in how many the running revision agrees with itself, and in how many of those
    the one on trial does."""

    prompts: int
    steady: int
    agreed: int

    @property
    def conclusive(self) -> bool:
        """Whether the running revision says the same twice in most prompts."""
        return 2 * self.steady > self.prompts

    @property
    def same(self) -> bool:
        """False where most of what the running revision is sure of comes out differently."""
        return not self.conclusive or 2 * self.agreed >= self.steady

    @property
    def words(self) -> str:
        """Both numbers, in a sentence."""
        itself = f"The running revision agrees with itself in {self.steady} of {self.prompts}"
        if not self.conclusive:
            return f"{itself} prompts, so that its output proves nothing."
        return f"{itself} prompts, and the new one with it in {self.agreed} of these."


def agreement(
    reference: ReferenceOutput, trial: Sequence[Continuation], tolerance: float
) -> Agreement:
    """How far the output of the revision on trial is that of the running one."""
    steady = [
        not differs(first, second, tolerance)
        for first, second in zip(reference.first, reference.second, strict=True)
    ]
    agreed = [
        sure and not differs(first, other, tolerance)
        for sure, first, other in zip(steady, reference.first, trial, strict=True)
    ]
    return Agreement(prompts=len(steady), steady=sum(steady), agreed=sum(agreed))
