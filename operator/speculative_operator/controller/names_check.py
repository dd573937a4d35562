"""Whether ready engines list the served names, asked once for each start of an engine.

A pod can be ready before its model is listed, so status does not believe readiness alone. Asking is
kept out of the reconcile: it must not wait for an engine. An engine that does not answer well is
asked again, less and less often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.pods import Pod
from speculative_operator.errors import EngineSilent

AskNames = Callable[[str], Awaitable[Collection[str] | None]]
"""The names that the engine at an address lists; None when it answers only to a key."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
MOST_AT_ONCE: Final = 16


@dataclass(frozen=True)
class Answer:
    """What an engine said: fine, or why not."""

    problem: str | None = None


class NamesCheck:
    """Asks engines in the background and remembers what each incarnation said."""

    def __init__(self, ask: AskNames, *, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._ask = ask
        self._sleep = sleep
        self._answers: dict[Reference, dict[str, Answer]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    def look_at(
        self,
        model: Reference,
        pods: Iterable[Pod],
        names: Mapping[str, Collection[str]],
        tell: Callable[[], None],
    ) -> Mapping[str, Answer]:
        """Answers so far of a model's ready pods, by incarnation; asks those that lack one.

        `names` are the served names by revision, `tell` is called when there is news.
        """
        ready = {pod.incarnation: pod for pod in pods if pod.alive and pod.ready and pod.address}
        known = self._answers.setdefault(model, {})
        for gone in known.keys() - ready.keys():
            del known[gone]
            self._stop(gone)
        for incarnation, pod in ready.items():
            if incarnation not in self._asking and known.get(incarnation) != Answer():
                self._asking[incarnation] = asyncio.create_task(
                    self._ask_until_fine(known, pod, names.get(pod.revision, ()), tell)
                )
        return dict(known)

    def forget(self, model: Reference) -> None:
        """The model is gone."""
        for incarnation in self._answers.pop(model, {}):
            self._stop(incarnation)

    def _stop(self, incarnation: str) -> None:
        if (task := self._asking.pop(incarnation, None)) is not None:
            task.cancel()

    async def _ask_until_fine(
        self,
        known: dict[str, Answer],
        pod: Pod,
        names: Collection[str],
        tell: Callable[[], None],
    ) -> None:
        pause = FIRST_PAUSE
        while True:
            async with self._turns:
                answer = await self._answer(pod, names)
            if known.get(pod.incarnation) != answer:
                known[pod.incarnation] = answer
                tell()
            if answer.problem is None:
                del self._asking[pod.incarnation]
                return
            await self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _answer(self, pod: Pod, names: Collection[str]) -> Answer:
        try:
            listed = await self._ask(pod.address)
        except EngineSilent as silence:
            return Answer(f"pod {pod.name} does not answer /v1/models: {silence}")
        missing = [] if listed is None else [name for name in names if name not in listed]
        return Answer(f"pod {pod.name} does not list {', '.join(missing)}" if missing else None)
