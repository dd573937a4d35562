"""What a trial asks engines for, in the background and step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

import pytest

from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.trials import questions as trial_questions
from speculative_operator.controller.trials.checks import (
    Case,
    Findings,
    TrialChecks,
)
from speculative_operator.controller.trials.questions import TRIES, Served
from speculative_operator.controller.trials.race import QUIET_SECONDS, SILENT_SECONDS
from speculative_operator.controller.tuner.ports import Replica
from speculative_operator.errors import EngineSilent
from speculative_operator.plan.continuations import PROMPTS, Continuation, ReferenceOutput
from speculative_operator.plan.trial import Hangs, NotCompared, Silent
from speculative_operator.tuning.contest import Contest
from speculative_operator.tuning.page import Page
from tests.support.windows import GOOD, Traffic, a_page

MODEL = Reference("SpeculativeModel", "prod", "qwen")
OLD = Replica("u1", "old-0", "10.0.0.1", ready=True, routed=True)
NEW = Replica("u2", "new-0", "10.0.0.2", ready=True, routed=True)
RUNNING, TRIED = Served((OLD,), "qwen"), Served((NEW,), "qwen")
LOADING = Case("key", RUNNING, reference=True, new=Served((), "qwen"), incarnation=None, said=None)
SAID = tuple((len(prompt), 7) for prompt in PROMPTS)
UP = replace(LOADING, new=TRIED, incarnation="u2/0", said=ReferenceOutput(SAID, SAID))
ON_SERVICE = replace(UP, arms=(0, 2, 4))


@dataclass
class Fakes:
    """Two engines, a clock that sleeping moves, and how often there was news."""

    silent: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    """Addresses whose answers the operator itself fails on."""
    hanging: set[str] = field(default_factory=set)
    locked: bool = False
    last: int = 7
    """The last token of the engine on trial."""
    pages: Callable[[Replica, float], Page | None] = lambda replica, now: None
    asked: list[str] = field(default_factory=list)
    sure: list[str] = field(default_factory=list)
    time: float = 0.0
    told: int = 0

    async def continuation(
        self, address: str, model: str, prompt: str, *, gaps: bool
    ) -> Continuation | None:
        assert model == "qwen"
        (self.sure if gaps else self.asked).append(address)
        await asyncio.sleep(0)
        if address in self.broken:
            raise OverflowError("cannot convert float infinity to integer")
        if address in self.unreachable:
            raise EngineSilent("port 8000: connection refused")
        if address in self.hanging:
            await asyncio.Event().wait()
        if address in self.silent:
            raise EngineSilent("/v1/completions answered 500")
        last = self.last if address == NEW.address else 7
        said = Continuation((len(prompt), last), (5.0, 0.1) if gaps else ())
        return None if self.locked else said

    async def served_names(self, address: str) -> Collection[str] | None:
        if address in self.unreachable:
            raise EngineSilent("port 8000: connection refused")
        return frozenset({"qwen"})

    async def read(self, replica: Replica) -> Page:
        if replica.address in self.broken:
            raise OverflowError("cannot convert float infinity to integer")
        page = self.pages(replica, self.time)
        if page is None:
            raise EngineSilent("no page")
        return page

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)

    def tell(self) -> None:
        self.told += 1


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
def checks(fakes: Fakes) -> TrialChecks:
    return TrialChecks(fakes, clock=lambda: fakes.time, sleep=fakes.sleep)


async def found(checks: TrialChecks, fakes: Fakes, case: Case) -> Findings:
    """What is known once there is nothing more to find out."""
    checks.look_at(MODEL, case, fakes.tell)
    for _ in range(2000):
        await asyncio.sleep(0)
    findings = checks.findings(MODEL)
    assert findings is not None
    return findings


async def test_the_running_revision_is_asked_twice_while_the_new_one_loads(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """One prompt at a time: a batch would change the kernels."""
    findings = await found(checks, fakes, LOADING)

    assert fakes.asked == [OLD.address] * 2 * len(PROMPTS)
    assert findings.reference is not None
    assert len(findings.reference.first) == len(findings.reference.second) == len(PROMPTS)
    assert fakes.told == 1


async def test_the_one_on_trial_is_asked_once_it_answers(checks: TrialChecks, fakes: Fakes) -> None:
    """What was known stays."""
    await found(checks, fakes, LOADING)
    findings = await found(checks, fakes, UP)

    assert fakes.asked[2 * len(PROMPTS) :] == [NEW.address] * len(PROMPTS)
    assert isinstance(findings.answers, tuple)


async def test_only_the_engine_on_trial_is_asked_how_sure_it_was_and_only_where_it_differs(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """Log-probabilities make an engine compile, which one that serves must not."""
    await found(checks, fakes, UP)
    assert fakes.sure == []

    fakes.last = 8
    findings = await found(checks, fakes, replace(UP, incarnation="u2/1"))

    assert fakes.sure == [NEW.address] * len(PROMPTS)
    assert isinstance(findings.answers, tuple)
    assert findings.answers[0].gaps == (5.0, 0.1)


async def test_nothing_is_asked_again_without_need(checks: TrialChecks, fakes: Fakes) -> None:
    """Passes come all the time."""
    await found(checks, fakes, UP)
    asked = len(fakes.asked)
    await found(checks, fakes, UP)

    assert len(fakes.asked) == asked


async def test_another_start_of_the_engine_is_asked_anew(checks: TrialChecks, fakes: Fakes) -> None:
    """It may be another engine in all but its name."""
    await found(checks, fakes, UP)
    asked = len(fakes.asked)
    findings = await found(checks, fakes, replace(UP, incarnation="u2/1"))

    assert len(fakes.asked) == asked + len(PROMPTS)
    assert findings.incarnation == "u2/1"


async def test_an_engine_behind_a_key_is_not_compared(checks: TrialChecks, fakes: Fakes) -> None:
    """The operator reads no Secret."""
    fakes.locked = True
    findings = await found(checks, fakes, LOADING)

    assert findings.reference is not None
    assert "API key" in findings.reference.missing


async def test_a_running_engine_that_fails_is_given_up(checks: TrialChecks, fakes: Fakes) -> None:
    """A change may be what mends it, so it must not be held up: there is no second round."""
    fakes.silent = {OLD.address}
    findings = await found(checks, fakes, LOADING)

    assert len(fakes.asked) == TRIES
    assert findings.reference is not None
    assert "old-0" in findings.reference.missing


async def test_a_running_engine_that_hangs_is_waited_for_a_bounded_time(
    checks: TrialChecks, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer has its time: three tries, and the rollout goes on."""
    monkeypatch.setattr(trial_questions, "ANSWER_SECONDS", 0.0)
    fakes.hanging = {OLD.address}
    findings = await found(checks, fakes, LOADING)

    assert len(fakes.asked) == TRIES
    assert findings.reference is not None
    assert "old-0" in findings.reference.missing
    assert "no answer within" in findings.reference.missing


async def test_all_answers_of_the_running_revision_have_a_time_together(
    checks: TrialChecks, fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pods it has and however slow each answer is."""
    monkeypatch.setattr(trial_questions, "REFERENCE_SECONDS", 0.0)
    fakes.hanging = {OLD.address}
    findings = await found(checks, fakes, LOADING)

    assert findings.reference == ReferenceOutput(missing=trial_questions.TOO_SLOW)


async def test_an_engine_on_trial_that_fails_again_and_again_is_silent(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """Once may be chance."""
    fakes.silent = {NEW.address}
    findings = await found(checks, fakes, UP)

    assert isinstance(findings.answers, Silent)
    assert "new-0" in findings.answers.words
    assert fakes.asked.count(NEW.address) == TRIES


async def test_an_engine_on_trial_that_cannot_be_reached_is_not_called_silent(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """It may be the operator's own network, and a bad revision is never tried again."""
    fakes.unreachable = {NEW.address}
    assert (await found(checks, fakes, UP)).answers is None

    fakes.unreachable = set()
    assert isinstance((await found(checks, fakes, UP)).answers, tuple)


async def test_a_fault_of_the_operator_holds_no_rollout_up(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """No pod goes before the running revision was asked, and asking again would fail again."""
    fakes.broken = {OLD.address, NEW.address}
    findings = await found(checks, fakes, LOADING)

    assert fakes.asked == [OLD.address]
    assert findings.reference == ReferenceOutput(missing=trial_questions.FAULT)
    findings = await found(checks, fakes, UP)
    assert findings.answers == NotCompared(trial_questions.FAULT)
    assert isinstance((await found(checks, fakes, ON_SERVICE)).speed, NotCompared)


async def test_speed_is_known_after_a_while_of_traffic(checks: TrialChecks, fakes: Fakes) -> None:
    """From what both did since the new one was put on the Service."""

    def pages(replica: Replica, now: float) -> Page:
        steps = {4: 400} if replica is OLD else {0: 60, 2: 60, 4: 60}
        window = Traffic(GOOD).window({k: int(n * (now + 1)) for k, n in steps.items()})
        return a_page(window)

    fakes.pages = pages
    findings = await found(checks, fakes, ON_SERVICE)

    assert isinstance(findings.speed, Contest)
    assert findings.speed.at_least > -0.1


async def test_the_last_words_of_an_engine_that_ends_are_no_reason_to_promote_it(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """Its plugin is gone while vLLM's own metrics still answer."""

    def pages(replica: Replica, now: float) -> Page:
        ends = replica is NEW and now >= 4
        return a_page(Traffic(GOOD).window({4: int(9 * (now + 1))}), plugin="" if ends else "0.1.0")

    fakes.pages = pages
    findings = await found(checks, fakes, ON_SERVICE)

    assert isinstance(findings.speed, Contest)


@pytest.mark.parametrize("answers", [True, False], ids=["with a page", "mute"])
async def test_an_engine_on_trial_that_hangs_is_found_out(
    checks: TrialChecks, fakes: Fakes, *, answers: bool
) -> None:
    """It has requests, and its counters stand still or its page stays away, since a hanging core
    serves that, while the running one works."""

    def pages(replica: Replica, now: float) -> Page | None:
        if replica is OLD:
            return a_page(Traffic(GOOD).window({4: int(400 * (now + 1))}))
        window = Traffic(GOOD).window({4: 400})
        return a_page(window, idle_seconds=now) if answers or not now else None

    fakes.pages = pages
    findings = await found(checks, fakes, ON_SERVICE)

    assert findings.speed == Hangs()


async def test_without_requests_nothing_is_waited_for(checks: TrialChecks, fakes: Fakes) -> None:
    """A model without traffic must be changeable."""
    fakes.pages = lambda replica, now: a_page(Traffic(GOOD).window({4: 400}), running=0)
    findings = await found(checks, fakes, ON_SERVICE)

    assert findings.speed == NotCompared("Speed is not compared: there are no requests.")
    assert fakes.time <= 2 * QUIET_SECONDS


async def test_the_prompts_of_a_trial_are_no_traffic(checks: TrialChecks, fakes: Fakes) -> None:
    """They are answered before speed is compared; what was done by then does not count."""

    def pages(replica: Replica, now: float) -> Page:
        done = fakes.asked.count(replica.address)
        return a_page(Traffic(GOOD).window({4: 32 * done}), running=0)

    fakes.pages = pages
    await found(checks, fakes, LOADING)
    findings = await found(checks, fakes, ON_SERVICE)

    assert len(fakes.asked) == 3 * len(PROMPTS)
    assert findings.speed == NotCompared("Speed is not compared: there are no requests.")


async def test_it_is_known_since_when_speed_is_compared(checks: TrialChecks, fakes: Fakes) -> None:
    """For that only so long may be waited. A pod that leaves the Service for a moment goes on."""
    fakes.pages = lambda replica, now: a_page(Traffic(GOOD).window({4: 400}))
    fakes.time = 7.0
    assert (await found(checks, fakes, UP)).since is None

    began = await found(checks, fakes, ON_SERVICE)
    assert began.since == 7.0
    fakes.time += 100.0
    await found(checks, fakes, UP)
    assert (await found(checks, fakes, ON_SERVICE)).since == 7.0
    assert (await found(checks, fakes, replace(UP, incarnation="u2/1"))).since is None


async def test_an_engine_that_is_silent_for_a_moment_is_waited_for(
    checks: TrialChecks, fakes: Fakes
) -> None:
    """A busy machine may be late with a page."""

    def pages(replica: Replica, now: float) -> Page | None:
        late = replica is NEW and now < SILENT_SECONDS - 5
        steps = {4: 400} if replica is OLD else {0: 60, 2: 60, 4: 60}
        window = Traffic(GOOD).window({k: int(n * (now + 1)) for k, n in steps.items()})
        return None if late else a_page(window)

    fakes.pages = pages
    findings = await found(checks, fakes, ON_SERVICE)

    assert isinstance(findings.speed, Contest)


@pytest.mark.parametrize("plugin", [None, ""])
async def test_engines_without_the_plugin_are_not_compared(
    checks: TrialChecks, fakes: Fakes, plugin: str | None
) -> None:
    """Nobody times their steps; nor where no page is to be had at all."""
    page = a_page(Traffic(GOOD).window({4: 400}), plugin="")
    fakes.pages = lambda replica, now: None if plugin is None else page
    findings = await found(checks, fakes, ON_SERVICE)

    assert isinstance(findings.speed, NotCompared)
    assert "step times" in findings.speed.words


async def test_a_trial_that_is_over_is_forgotten(checks: TrialChecks, fakes: Fakes) -> None:
    """And its questions end."""
    checks.look_at(MODEL, LOADING, fakes.tell)
    await asyncio.sleep(0)
    checks.look_at(MODEL, None, fakes.tell)
    asked = len(fakes.asked)
    for _ in range(50):
        await asyncio.sleep(0)

    assert checks.findings(MODEL) is None
    assert len(fakes.asked) == asked


async def test_another_revision_begins_anew(checks: TrialChecks, fakes: Fakes) -> None:
    """Superseded midway."""
    await found(checks, fakes, UP)
    findings = await found(checks, fakes, replace(LOADING, key="next"))

    assert (findings.key, findings.answers) == ("next", None)
