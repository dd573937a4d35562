"""The engines of one model as they are watched for faults that only a new start mends. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from speculative_operator.api.conditions import EventReason
from speculative_operator.controller.tuner.answers import Answers
from speculative_operator.controller.tuner.ports import TunedModel
from speculative_operator.tuning.hang import Pulse, hang_in_words, pulse
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.replacing import Engine, Spared, replacement
from speculative_operator.tuning.state import Replaced, State
from speculative_operator.tuning.verdict import Notice


@dataclass(frozen=True)
class Watched:
    """By pod UID: the last signs of life, names, and engines that hang, in words. `news` are those
    that were not known to hang before."""

    pulses: Mapping[str, Pulse] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    hung: Mapping[str, str] = field(default_factory=dict)
    news: tuple[Notice, ...] = ()

    def after(self, model: TunedModel, answers: Answers, now: float) -> Watched:
        """With what its engines answered now."""
        names = {replica.uid: replica.name for replica in (*model.replicas, *model.plain)}
        pulses = {uid: known for uid, known in self.pulses.items() if uid in names}
        for uid, answer in answers.items():
            if uid in names and isinstance(answer, Page):
                pulses[uid] = pulse(self.pulses.get(uid), answer, now - answer.age)
        hung = {uid: hang_in_words(names[uid]) for uid, seen in pulses.items() if seen.hangs}
        news = (
            Notice(EventReason.ENGINE_HANGS, words, warning=True)
            for uid, words in hung.items()
            if uid not in self.hung
        )
        return Watched(pulses, names, hung, tuple(news))

    def replacement(self, model: TunedModel, state: State, now: float) -> Replaced | Spared | None:
        """The pod that is to be replaced now, or would be, where the user allows it."""
        if not model.replaces:
            return None
        engines = [
            Engine(
                uid=replica.uid,
                ready=replica.ready,
                routed=replica.routed,
                hangs=replica.uid in self.hung,
                started=self._started(replica.uid),
            )
            for replica in (*model.replicas, *model.plain)
        ]
        wanted = model.policy.restart.replicas
        return replacement(engines, wanted, state, now, downtime=model.downtime)

    def _started(self, uid: str) -> float | None:
        seen = self.pulses.get(uid)
        return seen.counters.started if seen is not None else None
