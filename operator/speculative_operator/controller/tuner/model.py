"""One model's tuning between two passes of the loop: answers in, what is to be written out.

No I/O here and no waiting: `Tuner` reads, saves and writes for it.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from speculative_operator.api.conditions import ConditionStatus, EventReason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.controller.tuner.answers import (
    Answers,
    gathered,
    not_tunable,
    pages_of,
    replica_view,
)
from speculative_operator.controller.tuner.decisions import Decisions, to_be_known
from speculative_operator.controller.tuner.delivery import Delivery
from speculative_operator.controller.tuner.plain_engines import PlainEngines
from speculative_operator.controller.tuner.ports import TunedModel, TuningView
from speculative_operator.controller.tuner.watched import Watched
from speculative_operator.tuning.alternatives import alternatives, next_look
from speculative_operator.tuning.conditions import Situation, overlaid
from speculative_operator.tuning.decide import Decision
from speculative_operator.tuning.gather import Gathering
from speculative_operator.tuning.history import History, kept
from speculative_operator.tuning.memory import Memory, moved
from speculative_operator.tuning.occasion import Occasion, Running
from speculative_operator.tuning.outlook import outlook
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.replacing import Spared, due, notice, remembered, spared_in_words
from speculative_operator.tuning.replicas import Part
from speculative_operator.tuning.restart import sensing
from speculative_operator.tuning.schedule import ScheduleFile, length_at
from speculative_operator.tuning.state import State
from speculative_operator.tuning.trust import trusted
from speculative_operator.tuning.variant import Restart, Variant, VariantChoice
from speculative_operator.tuning.verdict import Notice
from speculative_operator.tuning.window import NoEvidence, Window

SAVE_SECONDS, SAVE_JITTER = 60.0, 15.0
"""Least time between two saves that no decision asks for; the jitter spreads the models out."""

APPLYING_READ_SECONDS, IDLE_READ_SECONDS = 1.0, 10.0
"""How often engines are read while a schedule is on its way, and while they say that they have no
requests. Engines that say nothing may have some."""


class ModelTuning:
    """What the loop knows of one model at one revision.

    `next_pass` is when its engines should be read again, in Unix time.
    """

    def __init__(self, model: TunedModel, memory: Memory, now: float) -> None:
        self.model = model
        self.next_pass = now
        self._memory = replace(memory, history=())
        self._decisions = Decisions(model.key, History.of(memory.history))
        self._plain = PlainEngines(Gathering(opened=now))
        self._watched = Watched()
        self._spared: str | None = None
        self._saved = memory.revisions.get(model.key) or _found(model, now)
        self._answers: Answers = {}
        self._all_pages: list[Page] = []
        self._decision = self._decided(None, self._saved, now)
        opened = min(memory.written_at, now) if model.key in memory.revisions else now
        self._gathering = Gathering(opened=opened, bases=memory.bases)
        self._gap: NoEvidence | None = None
        self._delivery = Delivery(now)
        self._must_save = bool(self._decision.changes)
        self._notices = list(self._decision.notices)
        self._share = zlib.crc32(model.uid.encode()) / 2**32
        """A number from 0 to 1 that spreads models out which all started at once."""

    def observe(self, model: TunedModel, answers: Answers, *, now: float, pace: float) -> None:
        """Takes in what the ready engines answered, by pod UID, and decides.

        `pace` is the least number of seconds between readings with which the whole fleet can be
        read.
        """
        self.model = model
        pods = [pod.uid for pod in model.replicas]
        self._answers = {uid: answer for uid, answer in answers.items() if uid in pods}
        plain = {uid: answer for uid, answer in answers.items() if uid not in pods}
        self._all_pages = pages_of(answers)
        self._plain = self._plain.read(plain, model.policy.window, now)
        self._gathering = gathered(self._gathering, pods, self._answers, now)
        self._watched = self._watched.after(model, answers, now)
        self._notices += self._watched.news
        window: Window | None = None
        if self._gathering.closes(model.policy.window, now):
            window = self._closed(now)
        self._decide(window, now)
        self._replace(now)
        self._notices += self._delivery.watch(pages_of(self._answers), now)
        self.next_pass = self._next_pass(now, pace)

    def _policy(self, state: State) -> Policy:
        """What the user allows, on engines as they are, or were when they last answered."""
        live = self.model.scheduled and not_tunable(self._answers) is None
        if not pages_of(self._answers):
            live = live and not state.restart.reference
        return replace(self.model.policy, live=live)

    def _running(self) -> Running:
        """What serves now, with the window of the engines without speculation."""
        return Running(
            speculative=sum(replica.ready for replica in self.model.replicas),
            autoregressive=sum(replica.ready for replica in self.model.plain),
            pods=len(self.model.replicas) + len(self.model.plain),
            startup=self.model.startup,
            window=self._plain.closed,
        )

    @property
    def _away(self) -> bool:
        return self._decision.variant is Variant.AUTOREGRESSIVE

    def _closed(self, now: float) -> Window | None:
        """The window that ends now; None where it is no evidence."""
        gathering, self._gathering = self._gathering, self._gathering.next(now)
        names = {pod.uid: pod.name for pod in self.model.replicas}
        played = self._main_length()
        parts = {
            uid: Part(names[uid], gathering.latest[uid].started, part.as_played(played))
            for uid, part in gathering.windows().items()
        }
        if parts:
            state = self._decision.state
            policy = self._policy(state)
            found = trusted(parts, state, policy, present=names.keys(), now=now)
            self._decision = replace(self._decision, state=found.state)
            self._notices += found.notices
            window = found.window
        else:
            window = gathering.window()
        if isinstance(window, NoEvidence):
            self._gap = window
            return None
        self._gap = None
        return kept(replace(window, trials_over=self._trials_over()))

    def _trials_over(self) -> bool:
        tunable = [page for page in pages_of(self._answers) if page.tunable]
        return bool(tunable) and all(
            page.hash_in_force == self._delivery.application.digest
            and not any(trial.rounds for trial in page.trials)
            for page in tunable
        )

    def _decide(self, window: Window | None, now: float) -> None:
        before = self._decision
        after = self._decision = self._decided(window, before.state, now)
        self._notices += after.notices
        self._must_save = self._must_save or to_be_known(before, after)

    def _replace(self, now: float) -> None:
        """A pod whose engine is at fault, if it is its turn; it goes once that is saved."""
        state = self._decision.state
        found = self._watched.replacement(self.model, state, now)
        before, self._spared = self._spared, None
        if found is None:
            return
        if isinstance(found, Spared):
            self._spared = spared_in_words(found, self._watched.names)
            if self._spared != before:
                said = Notice(EventReason.POD_NOT_REPLACED, self._spared, warning=True)
                self._notices.append(said)
            return
        after = replace(state, replaced=remembered(state.replaced, found))
        self._decision = replace(self._decision, state=after)
        self._notices.append(notice(found, self._watched.names))
        self._must_save = True

    def _decided(self, window: Window | None, state: State, now: float) -> Decision:
        occasion = Occasion(now, self.model.look, self._running())
        return self._decisions.next(window, state, self._policy(state), occasion)

    def _next_pass(self, now: float, pace: float) -> float:
        limits, pages = self.model.policy.window, self._all_pages
        pace *= 0.75 + self._share / 2
        if not self._delivery.application.in_force and not self._delivery.late(now):
            return now + APPLYING_READ_SECONDS
        if pages and not any(page.running or page.waiting for page in pages):
            return now + max(IDLE_READ_SECONDS, pace)
        opened = self._plain.gathering.opened if self._away else self._gathering.opened
        early = opened + limits.least_seconds
        return max(early if early > now else now + limits.least_seconds, now + pace)

    # The memory.

    def memory_to_save(self, now: float) -> Memory | None:
        """The memory if it is to be saved now."""
        old = now - self._memory.written_at >= SAVE_SECONDS + SAVE_JITTER * self._share
        state = self._decision.state
        if not self._must_save and not (old and moved(self._saved, state, self.model.policy)):
            return None
        memory = self._memory.with_state(self.model.key, state)
        return replace(
            memory,
            bases=self._gathering.bases,
            history=self._decisions.history.lines,
            written_at=now,
        )

    @property
    def has_decided(self) -> bool:
        """Whether a decision is not saved yet; it is acted upon only then."""
        return self._must_save

    @property
    def is_saved(self) -> bool:
        """Whether something was ever saved of the model."""
        return self._memory.written_at > 0.0

    def memory_lost(self) -> None:
        """Somebody has deleted what was saved, so it is saved again."""
        self._must_save = True

    def memory_saved(self, memory: Memory) -> None:
        self._memory = replace(memory, history=())
        self._saved = memory.revisions[self.model.key]
        self._must_save = False

    # The schedule.

    def schedule_to_write(
        self, current: str | None, lease: tuple[str, int] | None, now: float
    ) -> tuple[str, int] | None:
        """Text and attempt if a schedule is to be handed on now. `current` is what is written; None
        where no engine is there to play one."""
        if not self.model.scheduled or not_tunable(self._answers) is not None:
            return None
        if current is None and self.model.plain:
            return None
        decision = self._decision
        wanted = ScheduleFile(decision.table, decision.trials, lease, decision.state.looks)
        return self._delivery.to_write(wanted, current, pages_of(self._answers), now)

    def schedule_written(self, now: float) -> None:
        """The schedule was handed on; the engines are soon read to see it in force."""
        self._delivery.attempted()
        self.next_pass = min(self.next_pass, now + APPLYING_READ_SECONDS)

    # What is told.

    def view(self, now: float) -> TuningView:
        """Everything that status shows."""
        decision, state = self._decision, self._decision.state
        policy = self._policy(state)
        away, busiest = self._away, state.busiest
        situation = Situation(
            gap=self._plain.gap if away else self._gap,
            not_tunable=not_tunable(self._answers),
            unscheduled=self.model.restart_helps and self.model.policy.mode is not TuningMode.OFF,
            applying=not away and self._delivery.under_way(decision),
            late=not away and self._delivery.late(now),
        )
        healthy, tuned = overlaid(decision.healthy, decision.tuned, situation, self.model.policy)
        if self._spared is not None and healthy.status is not ConditionStatus.TRUE:
            healthy = replace(healthy, message=f"{healthy.message} {self._spared}")
        odd = {standing.uid: standing.text for standing in reversed(state.replicas.odd)}
        return TuningView(
            key=self.model.key,
            table=decision.table,
            main_length=self._main_length(),
            healthy=healthy,
            tuned=tuned,
            choice=VariantChoice(
                self.model.key, self._saved.restart.variant, sensing(self._saved, self.model.policy)
            ),
            evidence=state.evidence,
            decisions=state.changes,
            alternatives=alternatives(state, policy, busiest) if busiest is not None else (),
            next_look=next_look(state, policy, waits=self._gap is not None),
            outlook=outlook(state, policy),
            tally=self._decisions.tally,
            hung=self._watched.hung,
            replace=frozenset(done.uid for done in self._saved.replaced if due(done, now)),
            replicas={
                uid: replica_view(answer, odd.get(uid)) for uid, answer in self._answers.items()
            },
        )

    def _main_length(self) -> int:
        """K in force at the batch size that is seen most."""
        busiest = self._decision.state.busiest
        return length_at(self._decision.table, 1 if busiest is None else busiest)

    def take_notices(self) -> list[Notice]:
        """What was not yet told, each once."""
        notices, self._notices = self._notices, []
        return notices


def _found(model: TunedModel, now: float) -> State:
    """The state of a revision of which nothing is remembered. Where it runs without speculation,
    be it beside a sensor, the memory was lost, and what runs stays."""
    sensors = 1 if model.policy.restart.sensor else 0
    if not model.plain or len(model.replicas) > sensors:
        return State()
    return State(
        restart=Restart(variant=Variant.AUTOREGRESSIVE, since=now, looked=now, arrived=True)
    )
