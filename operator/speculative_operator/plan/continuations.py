"""Whether two revisions of a model give the same output: greedy continuations of fixed prompts.

Kernels differ in near ties, and from the first other token on two texts have nothing in common. So
only the first difference of a prompt is looked at, and it counts unless it is such a tie: the two
tokens are the engine's two best there, and the best is ahead by no more than the tolerance. An
engine that is broken so that it is sure of nothing has other tokens there than the running one's.
How sure it was is asked of the engine on trial alone, and only where it differs: the first
log-probabilities after a start make an engine compile for seconds, or end where it has no compiler,
and neither must happen to one that serves. The answer is as good as that of the running one: what
the two differ by at that place is the sum of both gaps, and either may have the larger part of it.
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


Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Continuation:
    """Tokens by their numbers. Where they were asked for, `runners_up` are the second best at each
    place, and `gaps` by how much less their log-probability was."""

    tokens: Tokens
    gaps: tuple[float, ...] = ()
    runners_up: Tokens = ()

    def tie_at(self, place: int, said: set[int], tolerance: float) -> bool:
        """Whether the tokens that were `said` there are its two best, in a near tie."""
        if place >= len(self.gaps) or self.gaps[place] > tolerance:
            return False
        return said <= {self.tokens[place], self.runners_up[place]}


def _parting(one: Tokens, other: Tokens) -> int | None:
    """Where two continuations part; None where they do not."""
    places = (at for at, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
    shorter = min(len(one), len(other))
    return next(places, None if len(one) == len(other) else shorter)


@dataclass(frozen=True)
class ReferenceOutput:
    """What the running revision answered, once and again; or in `missing` why that is not known."""

    first: tuple[Tokens, ...] = ()
    second: tuple[Tokens, ...] = ()
    missing: str = ""

    def to_json(self) -> str:
        """Compact: 2 KiB, to be kept in an annotation."""
        if self.missing:
            return json.dumps({"missing": self.missing}, separators=(",", ":"))
        both = {"first": self.first, "second": self.second}
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

    def leaves_doubt(self, prompt: int, trial: Tokens) -> bool:
        """Whether it matters how sure the engine on trial is of its answer to a prompt."""
        return {self.first[prompt], self.second[prompt]} != {trial}


def _read(plain: Sequence[Sequence[int]]) -> tuple[Tokens, ...]:
    return tuple(tuple(int(token) for token in each) for each in plain)


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
    steady = agreed = 0
    for first, second, new in zip(reference.first, reference.second, trial, strict=True):
        if _same(first, second, new, tolerance):
            steady += 1
            agreed += any(_same(said, new.tokens, new, tolerance) for said in (first, second))
    return Agreement(prompts=len(trial), steady=steady, agreed=agreed)


def _same(one: Tokens, other: Tokens, new: Continuation, tolerance: float) -> bool:
    """Whether two part nowhere, or in a near tie as the engine on trial saw it: as far as it has
    come there by the same tokens, it saw the same."""
    place = _parting(one, other)
    if place is None:
        return True
    said = {*one[place : place + 1], *other[place : place + 1]}
    return new.tokens[:place] == one[:place] and new.tie_at(place, said, tolerance)
