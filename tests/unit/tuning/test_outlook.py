"""Why engines are not restarted in the other variant, in words and numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.outlook import outlook
from speculative_operator.tuning.policy import Policy, RestartLimits
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Restart, Variant
from tests.support.variants import ONE, PAIR
from tests.support.windows import a_policy

LEFT = Restart(variant=Variant.AUTOREGRESSIVE, startup=90.0, difference=0.12, owed=-30.0)
"""Engines without speculation that bring 13% more than live tuning would."""


@pytest.mark.parametrize(
    ("restart", "limits", "message"),
    [
        (Restart(), RestartLimits(wanted=True), "not allowed"),
        (Restart(), ONE, "no start-up was timed"),
        (Restart(startup=90.0), PAIR, "not enough is known"),
        (Restart(startup=90.0, difference=0.04), PAIR, "slower, or not faster by enough"),
        (Restart(startup=90.0, difference=0.12), PAIR, "has to make up for the price"),
        (LEFT, PAIR, "slower, or not faster by enough"),
        (replace(LEFT, looking=True), PAIR, "under way"),
    ],
)
def test_it_says_what_stands_in_the_way(
    restart: Restart, limits: RestartLimits, message: str
) -> None:
    """The first thing that has to change before engines are restarted."""
    found = outlook(State(restart=restart), a_policy(restart=limits))

    assert found is not None
    assert message in found.message


@pytest.mark.parametrize(
    ("policy", "gain", "message"),
    [
        (a_policy(restart=PAIR, mode=TuningMode.RECOMMEND), 0.127, "only says so"),
        (a_policy(restart=PAIR, low=1), None, "bounds leave no K=0"),
    ],
)
def test_it_promises_no_restart_that_the_spec_forbids(
    policy: Policy, gain: float | None, message: str
) -> None:
    """Where nothing is added up, the last sum tells nothing either."""
    found = outlook(State(restart=Restart(startup=90.0, difference=0.12)), policy)

    assert found is not None
    assert message in found.message
    assert found.gain == (None if gain is None else pytest.approx(gain, abs=1e-3))


def test_the_gain_is_of_the_other_variant() -> None:
    """Whichever of the two runs."""
    policy = a_policy(restart=PAIR)
    there = outlook(State(restart=Restart(difference=0.12)), policy)
    back = outlook(State(restart=LEFT), policy)
    assert there is not None
    assert back is not None

    assert (there.variant, there.price) == (Variant.AUTOREGRESSIVE, None)
    assert there.gain == pytest.approx(0.127, abs=1e-3)
    assert (back.variant, back.owed) == (Variant.SPECULATIVE, -30.0)
    assert back.gain == pytest.approx(-0.113, abs=1e-3)


def test_nothing_is_said_of_what_the_user_does_not_want() -> None:
    """Level Live is the default: most users never hear of it."""
    assert outlook(State(restart=LEFT), a_policy()) is None
