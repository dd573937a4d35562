"""Whether ready engines list the served names, asked once for each start of an engine.

A pod can be ready before its model is listed, so status does not believe readiness alone. Asking is
kept out of the reconcile: it must not wait for an engine. An engine that does not answer well is
asked again, less and less often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.errors import EngineSilent

AskNames = Callable[[str], Awaitable[Collection[str] | None]]
"""The names that the engine at an address lists; None when it answers only to a key."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
MOST_AT_ONCE: Final = 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What an engine said: fine, or why not."""

    problem: str | None = None


@dataclass(frozen=True)
class _Asked:
    """One model's engines by incarnation: what they said, and who is still asking them."""

    answers: dict[str, Answer] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def forget(self, incarnations: Iterable[str]) -> None:
        for incarnation in incarnations:
            self.answers.pop(incarnation, None)
            if (task := self.tasks.pop(incarnation, None)) is not None:
                task.cancel()

    @property
    def incarnations(self) -> set[str]:
        return self.answers.keys() | self.tasks.keys()


class NamesCheck:
    """Asks engines in the background and remembers what each incarnation said."""

    def __init__(self, ask: AskNames, *, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._ask = ask
        self._sleep = sleep
        self._models: dict[Reference, _Asked] = {}
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
        asked = self._models.setdefault(model, _Asked())
        asked.forget(asked.incarnations - ready.keys())
        for incarnation, pod in ready.items():
            if incarnation not in asked.incarnations:
                asked.tasks[incarnation] = asyncio.create_task(
                    self._ask_until_fine(asked, pod, names.get(pod.revision, ()), tell)
                )
        return dict(asked.answers)

    def forget(self, model: Reference) -> None:
        """The model is gone."""
        if (asked := self._models.pop(model, None)) is not None:
            asked.forget(asked.incarnations)

    async def _ask_until_fine(
        self, asked: _Asked, pod: Pod, names: Collection[str], tell: Callable[[], None]
    ) -> None:
        pause = FIRST_PAUSE
        while True:
            async with self._turns:
                answer = await self._answer(pod, names)
            if asked.answers.get(pod.incarnation) != answer:
                asked.answers[pod.incarnation] = answer
                tell()
            if answer.problem is None:
                del asked.tasks[pod.incarnation]
                return
            await self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _answer(self, pod: Pod, names: Collection[str]) -> Answer:
        try:
            listed = await self._ask(pod.address)
        except EngineSilent as silence:
            return Answer(f"Pod {pod.name} does not answer /v1/models: {silence}.")
        except Exception:
            logger.exception("asking pod %s/%s for its names failed", pod.namespace, pod.name)
            return Answer(
                f"Pod {pod.name} could not be asked: a fault of the operator, see its log."
            )
        missing = [] if listed is None else [name for name in names if name not in listed]
        return Answer(f"Pod {pod.name} does not list {', '.join(missing)}." if missing else None)
