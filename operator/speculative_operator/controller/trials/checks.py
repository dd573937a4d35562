"""What a trial asks engines for, in the background: a reconcile must not wait for an engine.

First the running revision's answers, twice; then those of the pod on trial; then, while requests
reach that pod, the pages of both. What was found is kept until another revision is on trial, or the
engine on trial starts again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.trials.questions import (
    FAULT,
    Answers,
    Engines,
    Questions,
    Served,
)
from speculative_operator.controller.trials.race import Race
from speculative_operator.controller.tuner.answers import read_all
from speculative_operator.plan.continuations import ReferenceOutput
from speculative_operator.plan.trial import NotCompared, Speed

READ_SECONDS: Final = 2.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Case:
    """What is to be found out now of revision `key`.

    reference    the running revision's answers are to be taken
    new          the engine on trial, of the start `incarnation`, once it answers
    said         what the running revision said, once it is known: the engine on trial is asked too
    arms         the proposal lengths that it plays, once requests reach it; empty before
    """

    key: str
    running: Served
    reference: bool
    new: Served
    incarnation: str | None
    said: ReferenceOutput | None
    arms: tuple[int, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What is known of revision `key`; all but `reference` is of the start `incarnation`. `since`
    is the Unix time from which on its speed was compared: requests reach it, and its output is
    known."""

    key: str
    reference: ReferenceOutput | None = None
    incarnation: str | None = None
    answers: Answers | None = None
    since: float | None = None
    speed: Speed | None = None

    def of(self, case: Case) -> Findings:
        """Without what is of another start."""
        if self.incarnation == case.incarnation:
            return self
        return Findings(self.key, self.reference, case.incarnation)

    def given_up(self) -> Findings:
        """With what is not known yet as not to be compared."""
        return replace(
            self,
            reference=self.reference or ReferenceOutput(missing=FAULT),
            answers=self.answers or NotCompared(FAULT),
            speed=NotCompared("Speed is not compared: a fault of the operator, see its log."),
        )


@dataclass
class _Checks:
    """One model's trial."""

    case: Case
    findings: Findings
    task: asyncio.Task[None] | None = None


class TrialChecks:
    """Finds out what trials need to know."""

    def __init__(
        self,
        engines: Engines,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._engines = engines
        self._questions = Questions(engines, sleep)
        self._clock = clock
        self._sleep = sleep
        self._models: dict[Reference, _Checks] = {}

    def findings(self, model: Reference) -> Findings | None:
        """What is known of the revision that is on trial now."""
        checks = self._models.get(model)
        return checks.findings if checks is not None else None

    def look_at(self, model: Reference, case: Case | None, tell: Callable[[], None]) -> None:
        """Goes on with what is to be found out; `tell` is called when there is news."""
        checks = self._models.get(model)
        if checks is not None and (case is None or case.key != checks.case.key):
            self.forget(model)
            checks = None
        if case is None:
            return
        if checks is None:
            checks = self._models[model] = _Checks(case, Findings(case.key))
        checks.case = case
        checks.findings = checks.findings.of(case)
        if checks.task is None and self._step(checks) is not None:
            checks.task = asyncio.create_task(self._run(checks, tell))

    def forget(self, model: Reference) -> None:
        """No revision of the model is on trial any more."""
        checks = self._models.pop(model, None)
        if checks is not None and checks.task is not None:
            checks.task.cancel()

    async def _run(self, checks: _Checks, tell: Callable[[], None]) -> None:
        """Step by step, until there is nothing more to find out for now. A rollout waits for what
        is found, so after an error of ours what is not known yet is not compared."""
        try:
            while (step := self._step(checks)) is not None:
                await step(checks, tell)
        except Exception:
            logger.exception("the trial of revision %s could not be checked", checks.case.key)
            checks.findings = checks.findings.given_up()
            tell()
        finally:
            checks.task = None

    def _step(
        self, checks: _Checks
    ) -> Callable[[_Checks, Callable[[], None]], Awaitable[None]] | None:
        case, found = checks.case, checks.findings
        if case.reference and found.reference is None:
            return self._take_reference
        if case.incarnation is None:
            return None
        if case.said is not None and found.answers is None:
            return self._ask_trial
        if case.arms and not isinstance(found.speed, NotCompared):
            return self._compare_speed
        return None

    async def _take_reference(self, checks: _Checks, tell: Callable[[], None]) -> None:
        reference = await self._questions.reference(checks.case.running)
        checks.findings = replace(checks.findings, reference=reference)
        tell()

    async def _ask_trial(self, checks: _Checks, tell: Callable[[], None]) -> None:
        asked = checks.case.incarnation
        answers = await self._questions.trial(checks.case.new, checks.case.said)
        if answers is not None and asked == checks.case.incarnation:
            checks.findings = replace(checks.findings, answers=answers)
            tell()

    async def _compare_speed(self, checks: _Checks, tell: Callable[[], None]) -> None:
        """For as long as requests reach the same start of the engine on trial."""
        asked, race = checks.case.incarnation, Race.at(self._clock())
        if checks.findings.since is None:
            checks.findings = replace(checks.findings, since=race.opened)
            tell()
        while checks.case.arms and checks.case.incarnation == asked:
            case = checks.case
            running = await read_all(case.running.replicas, self._engines.read)
            new = await read_all(case.new.replicas, self._engines.read)
            race = race.read(running, new, self._clock())
            speed = race.speed(case.arms, self._clock())
            if speed is not None and checks.case.incarnation == asked:
                checks.findings = replace(checks.findings, speed=speed)
                tell()
            if isinstance(speed, NotCompared):
                return
            await self._sleep(READ_SECONDS)
