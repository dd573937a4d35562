"""Pods of the variant that is wanted never come: the one that was left goes on, or comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.moves import back, look
from speculative_operator.tuning.occasion import Occasion, Running
from speculative_operator.tuning.policy import RestartLimits
from speculative_operator.tuning.state import State
from tests.support.variants import ONE, PAIR, STARTUP
from tests.unit.tuning.test_restart import AUTOREGRESSIVE, DEAR, SPECULATIVE, a_play, without


def test_engines_that_never_come_are_given_up() -> None:
    """No GPU for the surge, or they do not start: speculation goes on, and that is told."""
    play = a_play()
    while not play.moves:
        play.play([DEAR])
    stuck = Running(speculative=2, autoregressive=0, startup=STARTUP)
    state = play.decision.state

    soon = decide(None, state, play.policy, Occasion(play.now + 600, running=stuck))
    late = decide(None, state, play.policy, Occasion(play.now + 3600, running=stuck))

    assert soon.variant is AUTOREGRESSIVE
    assert late.variant is SPECULATIVE
    assert "became ready" in late.changes[0].message


def test_engines_that_are_down_for_a_while_are_not_given_up() -> None:
    """They had come; a node's repair is no reason to roll."""
    play = without()
    down = Running(speculative=0, autoregressive=0, startup=STARTUP)

    late = decide(None, play.decision.state, play.policy, Occasion(play.now + 86400, running=down))

    assert late.variant is AUTOREGRESSIVE


@pytest.mark.parametrize("limits", [ONE, PAIR])
@pytest.mark.parametrize("looking", [False, True])
def test_a_way_back_that_never_comes_is_given_up_too(
    limits: RestartLimits, *, looking: bool
) -> None:
    """A device fault, or the hub is down: where the only replica went for it, nothing serves, and
    engines without speculation do start. The next try is dearer."""
    play = without(limits)
    left = play.decision.state
    returned = back(left, play.policy, play.now, "engines")[0]
    if looking:
        returned = look(left, replace(play.policy, restart=ONE), play.now)[0]
    down = Running(speculative=0, autoregressive=0, startup=STARTUP)

    soon = decide(None, returned, play.policy, Occasion(play.now + 600, running=down))
    late = decide(None, soon.state, play.policy, Occasion(play.now + 3600, running=down))

    assert (soon.variant, late.variant) == (SPECULATIVE, AUTOREGRESSIVE)
    assert "no engine with speculation became ready" in late.changes[0].message
    assert late.state.restart.patience == returned.restart.patience + 1
    assert not late.state.restart.arrived


def test_a_first_start_is_no_way_back() -> None:
    """However long it takes: no engines without speculation have served."""
    play = a_play()
    down = Running(speculative=0, autoregressive=0, startup=STARTUP)
    begun = decide(None, State(), play.policy, Occasion(play.now, running=down))

    late = decide(None, begun.state, play.policy, Occasion(play.now + 86400, running=down))

    assert late.variant is SPECULATIVE


def test_a_return_that_came_is_not_given_up_later() -> None:
    """What is down then is down for reasons of its own."""
    play = without()
    returned = back(play.decision.state, play.policy, play.now, "engines")[0]
    came = Running(speculative=2, autoregressive=0, startup=STARTUP)
    down = Running(speculative=0, autoregressive=0, startup=STARTUP)

    there = decide(None, returned, play.policy, Occasion(play.now + 600, running=came))
    late = decide(None, there.state, play.policy, Occasion(play.now + 86400, running=down))

    assert late.variant is SPECULATIVE
