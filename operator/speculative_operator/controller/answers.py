"""What ready engines answered in one pass: pages, or silence. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from speculative_operator.api.conditions import Reason
from speculative_operator.controller.tuner_ports import ReplicaView
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.window import NoEvidence

Answer = Page | EngineSilent
Answers = Mapping[str, Answer]
"""By pod UID."""


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
