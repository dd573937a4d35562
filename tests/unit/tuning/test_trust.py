"""What may be learned from a window of several replicas, and what is told of the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import REASONS, ConditionStatus, ConditionType, Reason
from speculative_operator.tuning.aging import Aging
from speculative_operator.tuning.conditions import health
from speculative_operator.tuning.memory import Memory, from_data, to_data
from speculative_operator.tuning.page import Counters, Prompts
from speculative_operator.tuning.repeats import Repeats
from speculative_operator.tuning.replicas import Part
from speculative_operator.tuning.state import State
from speculative_operator.tuning.trust import Trusted, trusted
from speculative_operator.tuning.window import NoEvidence, Window
from tests.support.windows import DEAD, NOISY, Traffic, a_policy, course

POLICY = a_policy()
KNOWN = course(POLICY, [Traffic(NOISY)] * 5)[-1].state


def seen(state: State, *fleet: Traffic | None, windows: int = 1, steps: int = 100) -> Trusted:
    """The last of some windows of pods a, b, … that do this; None has no traffic."""
    present = [chr(ord("a") + n) for n in range(len(fleet))]
    parts = {
        uid: Part(f"pod-{uid}", 0.0, traffic.window({4: steps}))
        for uid, traffic in zip(present, fleet, strict=True)
        if traffic is not None
    }
    found = trusted(parts, state, POLICY, present=present, now=60.0)
    for _ in range(windows - 1):
        found = trusted(parts, found.state, POLICY, present=present, now=60.0)
    return found


def test_replicas_in_line_are_one_window() -> None:
    """They share evidence."""
    found = seen(KNOWN, Traffic(NOISY), Traffic(NOISY))

    assert isinstance(found.window, Window)
    assert (found.window.replicas, found.window.drafts) == (2, 800)
    assert found.notices == ()


def test_the_window_lacks_the_odd_one() -> None:
    """From the first window in which it is out of line."""
    found = seen(KNOWN, Traffic(DEAD), Traffic(NOISY))

    assert isinstance(found.window, Window)
    assert found.window.replicas == 1
    assert found.window.total(4).accepted == pytest.approx(400 * sum(NOISY))


def test_falling_out_of_line_and_coming_back_are_each_told_once() -> None:
    """Events, for who does not look at conditions."""
    fallen = seen(KNOWN, Traffic(DEAD), Traffic(NOISY), windows=2)
    after = seen(fallen.state, Traffic(DEAD), Traffic(NOISY), windows=10)
    state, told = after.state, list(after.notices)
    for _ in range(6):
        back = seen(state, Traffic(NOISY), Traffic(NOISY))
        state, told = back.state, told + list(back.notices)

    assert [notice.reason for notice in fallen.notices] == ["ReplicaOutOfLine"]
    assert [notice.reason for notice in told] == ["ReplicaInLine"]


def test_where_only_the_odd_one_has_traffic_there_is_no_evidence() -> None:
    """And why is said."""
    fallen = seen(KNOWN, Traffic(DEAD), Traffic(NOISY), windows=3)
    found = seen(fallen.state, Traffic(DEAD), None)

    assert isinstance(found.window, NoEvidence)
    assert "in line" in found.window.message


def test_the_odd_one_survives_the_operator() -> None:
    """A new operator must not average it in again."""
    state = seen(KNOWN, Traffic(DEAD), Traffic(NOISY), windows=3).state
    data = to_data(Memory(revisions={"key": state}))
    read = from_data(data.data, data.binary_data).revisions["key"]

    assert read.replicas.odd == state.replicas.odd
    assert seen(read, Traffic(DEAD), Traffic(NOISY)).state.replicas.odd == state.replicas.odd


def test_counted_prompts_survive_the_operator() -> None:
    """Their difference is taken from what was absorbed."""
    base = Counters(7, 100.0, {}, {}, Prompts(20, 3))
    data = to_data(Memory(bases={"a": base}))

    assert from_data(data.data, data.binary_data).bases["a"].prompts == Prompts(20, 3)


def aged(proof: float) -> State:
    return replace(KNOWN, aging=Aging(proof=proof, message="It falls."))


@pytest.mark.parametrize(
    ("state", "reason", "status"),
    [
        (seen(KNOWN, Traffic(DEAD), Traffic(NOISY), windows=3).state,
         Reason.REPLICA_OUT_OF_LINE, ConditionStatus.FALSE),
        (seen(State(evidence=KNOWN.evidence), Traffic((0.2, 0.1, 0.0, 0.0)), Traffic(NOISY),
              windows=5).state,
         Reason.REPLICAS_DISAGREE, ConditionStatus.UNKNOWN),
        (aged(0.0), Reason.ACCEPTANCE_DECAYS, ConditionStatus.UNKNOWN),
        (aged(5000.0), Reason.ACCEPTANCE_DECAYS, ConditionStatus.FALSE),
        (replace(KNOWN, repeats=Repeats(50, 50, said=True)),
         Reason.PROMPTS_REPEAT, ConditionStatus.UNKNOWN),
    ],
)  # fmt: skip
def test_each_doubt_has_its_own_reason(
    state: State, reason: Reason, status: ConditionStatus
) -> None:
    """Users act upon the word."""
    told = health(state, POLICY)

    assert (told.reason, told.status) == (reason, status)
    assert reason in REASONS[ConditionType.SPECULATION_HEALTHY]
