"""The annotation that asks for a look: obeyed once, kept until it can be, or refused aloud."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import EventReason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.window import Window
from tests.support.windows import Traffic, a_policy, first, looking


def asking(
    decision: Decision, policy: Policy, value: str | None, window: Window | None = None
) -> Decision:
    """The next decision, while the annotation has a value."""
    return decide(window, decision.state, policy, Occasion(100.0, value))


def told(decision: Decision) -> list[EventReason]:
    return [notice.reason for notice in decision.notices]


def test_before_any_traffic_it_waits_for_some() -> None:
    """No batch size is known that trials could be for; it was forgotten then."""
    policy = a_policy()
    waiting = asking(first(policy), policy, "now")
    seen = asking(waiting, policy, "now", Traffic().window({4: 400}))

    assert waiting.trials == ()
    assert told(waiting) == []
    assert len(looking(seen)) == 4


def test_while_the_counters_are_broken_it_waits_for_others() -> None:
    """Nothing would be learned of trials."""
    policy = a_policy()
    decision = asking(first(policy), policy, None, Traffic().window({4: 400}))
    window = Traffic().window({4: 400})
    contradictory = replace(
        window, rows={key: row._replace(accepted=1e6) for key, row in window.rows.items()}
    )
    broken = asking(decision, policy, "now", contradictory)
    mended = asking(broken, policy, "now", window)

    assert len(looking(broken)) < 4
    assert len(looking(mended)) == 4


def test_an_annotation_that_is_taken_away_asks_for_nothing() -> None:
    """Nor does the same value once more."""
    policy = a_policy()
    window = Traffic().window({4: 400})
    obeyed = asking(asking(first(policy), policy, None, window), policy, "now")
    gone = asking(obeyed, policy, None)
    again = asking(gone, policy, "now")

    assert obeyed.state.looks == gone.state.looks == again.state.looks


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mode": TuningMode.OFF}, "mode is Off"),
        ({"low": 2, "high": 2}, "leave K=2 only"),
        ({"trial_share": 0.0}, "trialSharePercent is 0"),
        ({"live": False}, "cannot be changed live"),
    ],
)
def test_where_it_cannot_be_obeyed_an_event_says_why_once(
    changes: dict[str, object], why: str
) -> None:
    """Silence looks like obedience."""
    policy = a_policy(**changes)
    refused = asking(first(policy), policy, "now")
    after = asking(refused, policy, "now")

    assert told(refused) == [EventReason.LOOK_REFUSED]
    assert why in refused.notices[0].message
    assert told(after) == []
