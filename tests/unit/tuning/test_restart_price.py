"""What a restart off speculation costs: the start, requests that it disturbs, whether it surges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.tuning.balance import price
from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.occasion import Occasion, Running
from speculative_operator.tuning.page import Prompts
from speculative_operator.tuning.variant import Restart, request_seconds
from tests.support.variants import ONE, PAIR, STARTUP, Play, costing
from tests.support.windows import Traffic, a_policy

DEAR = Traffic(step_ms=costing(1.6))


def test_a_dearer_start_waits_longer() -> None:
    """A model that loads for an hour is not restarted for ten minutes of loss."""
    minute, hour = Restart(startup=60.0), Restart(startup=3600.0)

    quick = price(PAIR, minute)
    assert price(PAIR, hour) > 10 * quick
    assert price(replace(PAIR, surge=True), minute) < quick < price(ONE, minute)


def test_requests_that_a_restart_disturbs_cost_too() -> None:
    """Those that run as a pod is told to end: short ones are waited for, long ones are cut."""
    limits = replace(PAIR, drain=120.0)
    known = {seconds: Restart(startup=60.0, request=seconds) for seconds in (1.0, 60.0, 3600.0)}
    short, usual, long = (price(limits, restart) for restart in known.values())

    assert price(limits, Restart(startup=60.0)) < short < usual < long
    assert price(replace(limits, drain=600.0), known[3600.0]) < long
    surge = replace(limits, surge=True)
    assert price(surge, known[60.0]) - price(surge, known[1.0]) < usual - short


def test_whether_a_surge_is_possible_is_known_from_the_last_restart() -> None:
    """Strategy Auto starts one pod more first where it finds GPUs."""
    auto, surge = replace(PAIR, surge=None), replace(PAIR, surge=True)
    first, surged = Restart(startup=60.0), Restart(startup=60.0, surged=True)
    in_place = replace(surged, surged=False)

    assert price(auto, first) == price(auto, in_place) == price(PAIR, first)
    assert price(auto, surged) == price(surge, first)


def test_how_long_a_request_takes_is_known_from_how_many_come() -> None:
    """Little's law: four run at a time, and two come in a second."""
    window = replace(Traffic(batch=4).window({0: 500}), prompts=Prompts(seen=10))
    running = 4 * sum(row.seconds for row in window.rows.values())

    assert request_seconds(window) == pytest.approx(running / 10)
    assert request_seconds(replace(window, prompts=Prompts(seen=4))) is None
    assert request_seconds(replace(window, prompts=None)) is None


@pytest.mark.parametrize(("pods", "surged"), [(2, False), (3, True)])
def test_a_surge_shows_in_the_pods_that_there_are_meanwhile(pods: int, surged: bool) -> None:
    """Two replicas, and for a while three pods."""
    play = Play(a_policy(restart=replace(PAIR, surge=None)), seed=1)
    while not play.moves:
        play.play([DEAR])
    state = play.decision.state
    running = Running(speculative=1, autoregressive=0, pods=pods, startup=STARTUP)
    decision = decide(None, state, play.policy, Occasion(play.now, running=running))

    assert decision.state.restart.surged is surged
