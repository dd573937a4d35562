"""What ready engines answered in one pass: pages, or silence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from speculative_operator.api.conditions import Reason
from speculative_operator.controller.tuner.ports import Replica, ReplicaView
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.window import NoEvidence

Answer = Page | EngineSilent
Answers = Mapping[str, Answer]
"""By pod UID."""


async def read_all(
    replicas: Iterable[Replica], read: Callable[[Replica], Awaitable[Page]]
) -> Answers:
    """All of them at the same time."""

    async def answer(replica: Replica) -> Answer:
        try:
            return await read(replica)
        except EngineSilent as silence:
            return silence

    asked = tuple(replicas)
    answers = await asyncio.gather(*(answer(replica) for replica in asked))
    return {replica.uid: said for replica, said in zip(asked, answers, strict=True)}


def pages_of(answers: Answers) -> list[Page]:
    """Of the engines that have one."""
    return [answer for answer in answers.values() if isinstance(answer, Page)]


def not_tunable(answers: Answers) -> str | None:
    """Why no engine that answers can change its length live, in its own words; None if one can, or
    none answers."""
    pages = pages_of(answers)
    if not pages or any(page.tunable for page in pages):
        return None
    return pages[0].reason or "the engines do not say why"


def gap_of(silence: EngineSilent) -> NoEvidence:
    """Silence as a part of a window."""
    unreadable = isinstance(silence, PageUnreadable)
    reason = Reason.METRICS_INVALID if unreadable else Reason.METRICS_UNREACHABLE
    return NoEvidence(reason, str(silence))


def gathered(
    gathering: Gathering, uids: Collection[str], answers: Answers, now: float
) -> Gathering:
    """The window that is open with what the engines `uids` answered now."""
    gathering = gathering.of(frozenset(uids))
    for uid in uids:
        answer = answers.get(uid)
        if isinstance(answer, Page):
            gathering = gathering.read(uid, answer, now)
        elif answer is not None:
            gathering = gathering.silent(uid, gap_of(answer))
    return gathering


def replica_view(answer: Answer, odd: str | None) -> ReplicaView:
    """What is told of one engine; `odd` says how it is out of line, if it is."""
    if isinstance(answer, EngineSilent):
        return ReplicaView(message=str(answer))
    message = answer.reason if not answer.tunable else answer.error
    return ReplicaView(answer.tunable, answer.hash_in_force, message or odd)
