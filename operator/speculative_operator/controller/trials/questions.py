"""What engines say to the prompts of a trial: those of the running revision, and the one on trial.

A rollout waits for the running revision, so what may be waited for it is bounded: a change may be
what mends an engine that does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from speculative_operator.controller.tuner.ports import Replica
from speculative_operator.errors import EngineSilent
from speculative_operator.plan.continuations import (
    PROMPTS,
    Continuation,
    ReferenceOutput,
    Tokens,
)
from speculative_operator.plan.trial import NotCompared, Silent
from speculative_operator.tuning.page import Page

TRIES: Final = 3
PAUSE_SECONDS: Final = 2.0

ANSWER_SECONDS: Final = 60.0
"""For one answer of the running revision."""

REFERENCE_SECONDS: Final = 180.0
"""For all of its answers. An engine that is slower is not compared."""

TOO_SLOW: Final = (
    f"Output is not compared: the running revision did not answer within {REFERENCE_SECONDS:.0f} s."
)
KEY_WANTED: Final = "Output is not compared: the engine answers only to an API key."

FAULT: Final = "Output is not compared: a fault of the operator, see its log."

Answers = tuple[Continuation, ...] | Silent | NotCompared


class Engines(Protocol):
    """What is asked of engines; EngineSilent from each."""

    async def served_names(self, address: str) -> Collection[str] | None: ...

    async def continuation(
        self, address: str, model: str, prompt: str, *, gaps: bool
    ) -> Continuation | None:
        """The greedy continuation; None when the engine answers only to a key."""
        ...

    async def read(self, replica: Replica) -> Page: ...


@dataclass(frozen=True)
class Served:
    """Engines of one revision that answer, and the name that they serve their model under."""

    replicas: tuple[Replica, ...]
    name: str


@dataclass(frozen=True)
class Questions:
    """Asked one at a time: a batch would change the kernels."""

    engines: Engines
    sleep: Callable[[float], Awaitable[None]]

    async def reference(self, running: Served) -> ReferenceOutput:
        """What the running revision says, once and again, or why that is not known."""
        try:
            async with asyncio.timeout(REFERENCE_SECONDS):
                return await self._twice(running)
        except TimeoutError:
            return ReferenceOutput(missing=TOO_SLOW)

    async def _twice(self, running: Served) -> ReferenceOutput:
        """Not again where the first round gave no answers."""
        first = await self.answers(running, seconds=ANSWER_SECONDS)
        if not isinstance(first, tuple):
            return ReferenceOutput(missing=_missing(first))
        again = await self.answers(running, seconds=ANSWER_SECONDS)
        if not isinstance(again, tuple):
            return ReferenceOutput(missing=_missing(again))
        return ReferenceOutput(_tokens(first), _tokens(again))

    async def trial(self, new: Served, said: ReferenceOutput | None) -> Answers | None:
        """What the engine on trial says. None where nothing of it can be reached, its names
        neither: that may be the network, and a bad revision is never tried again."""
        answers = await self.answers(new, said)
        if not isinstance(answers, Silent):
            return answers
        for replica in new.replicas:
            try:
                await self.engines.served_names(replica.address)
            except EngineSilent:
                continue
            return answers
        await self.sleep(PAUSE_SECONDS)
        return None

    async def answers(
        self,
        served: Served,
        said: ReferenceOutput | None = None,
        *,
        seconds: float | None = None,
    ) -> Answers:
        """Of the first engine that gives them all, each within some `seconds`; and how sure it was
        where that is not `said`."""
        why = "no engine of it answers"
        for attempt in range(TRIES):
            if attempt:
                await self.sleep(PAUSE_SECONDS)
            for replica in served.replicas:
                try:
                    return await self._answered(replica, served.name, said, seconds)
                except EngineSilent as silence:
                    why = f"pod {replica.name}: {silence}"
        return Silent(f"/v1/completions fails ({why}).")

    async def _answered(
        self, replica: Replica, model: str, said: ReferenceOutput | None, seconds: float | None
    ) -> Answers:
        """All prompts. Raises EngineSilent."""
        found = []
        for number, prompt in enumerate(PROMPTS):
            ask = partial(self.engines.continuation, replica.address, model, prompt)
            answer = await _within(seconds, ask(gaps=False))
            if answer is not None and said and said.leaves_doubt(number, answer.tokens):
                answer = await ask(gaps=True)
            if answer is None:
                return NotCompared(KEY_WANTED)
            found.append(answer)
        return tuple(found)


async def _within(
    seconds: float | None, answer: Awaitable[Continuation | None]
) -> Continuation | None:
    """Raises EngineSilent after so many seconds; None: however long the engine's client waits."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as late:
        raise EngineSilent(f"no answer within {seconds} s") from late


def _tokens(answers: tuple[Continuation, ...]) -> tuple[Tokens, ...]:
    return tuple(answer.tokens for answer in answers)


def _missing(answers: Silent | NotCompared) -> str:
    """Why there is no reference."""
    if isinstance(answers, NotCompared):
        return answers.words
    return f"Output is not compared: of the running revision {answers.words}"
