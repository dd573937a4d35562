"""Which pod is replaced for its engine's fault: one at a time, seldom, and never the last one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.aging import HOUR, Aging
from speculative_operator.tuning.faults import Broken
from speculative_operator.tuning.replacing import (
    Engine,
    Spared,
    due,
    remembered,
    replacement,
    spared_in_words,
)
from speculative_operator.tuning.standings import Replicas, Sign, Standing
from speculative_operator.tuning.state import Replaced, State
from speculative_operator.tuning.suspicion import Suspicion

NOW = 100_000.0
OLD = Engine("old", ready=True, routed=True, started=0.0)
NEW = Engine("new", ready=True, routed=True, started=NOW - 60)
SILENT = State(broken=Broken(Reason.NO_DRAFTS, "none", windows=2))
DECAYS = State(aging=Aging(message="falls"))


def odd(sign: Sign) -> State:
    """The newer one is out of line."""
    return State(
        replicas=Replicas((Standing("new", "new", sign, Suspicion(2.0, said=True), "odd"),))
    )


def hung(engine: Engine) -> Engine:
    return replace(engine, hangs=True)


def test_a_hung_engine_goes_also_if_it_is_alone() -> None:
    """It serves nobody, so nothing is lost."""
    found = replacement([hung(OLD)], 1, State(), NOW)

    assert found == Replaced("old", Reason.ENGINE_HANGS, NOW)


@pytest.mark.parametrize(
    ("state", "uid", "reason"),
    [
        (SILENT, "old", Reason.NO_DRAFTS),
        (DECAYS, "old", Reason.ACCEPTANCE_DECAYS),
        (odd(Sign.SILENCE), "new", Reason.NO_DRAFTS),
    ],
)
def test_one_that_answers_goes_only_while_another_serves(
    state: State, uid: str, reason: Reason
) -> None:
    """It still gives tokens, only slower."""
    alone = replace(OLD, uid=uid)

    assert replacement([OLD, NEW], 2, state, NOW) == Replaced(uid, reason, NOW)
    assert replacement([alone], 1, state, NOW) == Spared(uid, reason)
    assert replacement([alone], 1, state, NOW, downtime=True) == Replaced(uid, reason, NOW)
    beside_hung = replacement(
        [alone, replace(hung(NEW), uid="hung")], 2, replace(state, replaced=hangs_lately()), NOW
    )
    assert beside_hung == Spared(uid, reason)


def test_why_one_stays_names_both_ways_out() -> None:
    """The user has asked for it to be replaced, and nothing happens."""
    words = spared_in_words(Spared("old", Reason.NO_DRAFTS), {"old": "qwen-0"})

    assert "qwen-0" in words
    assert "spec.replicas" in words
    assert "spec.rollout.allowDowntime: true" in words


def test_a_pod_off_the_service_is_no_other_that_serves() -> None:
    """It is ready, but on trial: without the faulty one nobody would answer requests."""
    beside = replace(NEW, routed=False)

    assert replacement([OLD, beside], 2, DECAYS, NOW) == Spared("old", Reason.ACCEPTANCE_DECAYS)
    assert isinstance(replacement([OLD, beside], 2, DECAYS, NOW, downtime=True), Replaced)


def hangs_lately() -> tuple[Replaced, ...]:
    """A hung pod was replaced some minutes ago."""
    return (Replaced("gone", Reason.ENGINE_HANGS, NOW - 600),)


@pytest.mark.parametrize("sign", [sign for sign in Sign if sign is not Sign.SILENCE])
def test_one_that_is_only_unlike_the_others_stays(sign: Sign) -> None:
    """Its traffic may be, or its node; and counters that contradict each other no restart mends."""
    assert replacement([OLD, NEW], 2, odd(sign), NOW) is None


def test_a_sound_fleet_stays() -> None:
    """Nothing is at fault."""
    assert replacement([OLD, NEW], 2, State(), NOW) is None


def test_one_window_of_silence_is_not_enough() -> None:
    """It has harmless causes too."""
    once = State(broken=Broken(Reason.NO_DRAFTS, "none", windows=1))

    assert replacement([OLD, NEW], 2, once, NOW) is None


def test_a_young_engine_is_not_replaced_for_age() -> None:
    """It is the fresh one."""
    assert replacement([NEW, replace(NEW, uid="newer")], 2, DECAYS, NOW) is None


@pytest.mark.parametrize(
    "engines", [[hung(OLD)], [hung(OLD), replace(NEW, ready=False)]], ids=["missing", "starting"]
)
def test_while_a_pod_is_missing_or_starts_none_is_taken_away(engines: list[Engine]) -> None:
    """One at a time: a rollout, a crash or the last replacement is still under way."""
    assert replacement(engines, 2, State(), NOW) is None


def test_the_same_reason_comes_once_an_hour_and_another_at_once() -> None:
    """A restart that mends nothing must not become a loop."""
    lately = replace(SILENT, replaced=(Replaced("gone", Reason.NO_DRAFTS, NOW - HOUR + 60),))

    assert replacement([OLD, NEW], 2, lately, NOW) is None
    assert replacement([hung(OLD), NEW], 2, lately, NOW) == Replaced(
        "old", Reason.ENGINE_HANGS, NOW
    )
    assert replacement([OLD, NEW], 2, lately, NOW + 60) is not None


def test_until_a_pod_is_gone_no_other_goes() -> None:
    """It was asked to, and is still there."""
    asked = replace(DECAYS, replaced=(Replaced("old", Reason.NO_DRAFTS, NOW - 10),))

    assert replacement([OLD, NEW], 2, asked, NOW) is None


def test_a_deletion_that_came_late_is_not_made_any_more() -> None:
    """What was saved an hour ago may be long mended."""
    done = Replaced("old", Reason.NO_DRAFTS, NOW)

    assert due(done, NOW + 10)
    assert not due(done, NOW + HOUR)


def test_of_each_reason_the_last_one_is_remembered() -> None:
    """More is not needed, and the memory is small."""
    first, second = Replaced("a", Reason.NO_DRAFTS, 1.0), Replaced("b", Reason.NO_DRAFTS, 2.0)
    other = Replaced("c", Reason.ENGINE_HANGS, 1.5)

    assert remembered(remembered(remembered((), first), other), second) == (other, second)
