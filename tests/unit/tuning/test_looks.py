"""Which trials are asked for, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.tuning.looks import looked
from speculative_operator.tuning.rule import Option
from speculative_operator.tuning.schedule import Trial
from speculative_operator.tuning.state import State
from speculative_operator.tuning.trials import (
    LONGEST_BLOCK,
    SHORTEST_BLOCK,
    arms_to_try,
    trial,
    trials,
)
from tests.support.windows import Traffic, a_policy, course, first

GOOD = (0.97, 0.95, 0.93, 0.91)


def option(k: int, gain: float, error: float = 0.01, measured: bool = True) -> Option:
    return Option(k, gain, gain, error, measured, doubted=False)


# Which K.


def test_before_anything_is_measured_all_are_tried() -> None:
    """None can be left out without evidence."""
    found = tuple(option(k, 0.0, 0.4, measured=False) for k in (0, 1, 2, 3))

    assert arms_to_try(4, found, a_policy(), routine=False) == (0, 1, 2, 3)


def test_what_is_surely_worse_is_not_tried() -> None:
    """Each trial costs goodput."""
    found = (option(0, -0.4), option(1, -0.2), option(2, -0.01, 0.05), option(3, -0.03, 0.01))

    assert arms_to_try(4, found, a_policy(), routine=False) == (2,)


def test_what_is_surely_better_needs_no_more_trials() -> None:
    """It is chosen once two windows ask for it."""
    assert arms_to_try(4, (option(2, 0.3),), a_policy(), routine=False) == ()


def test_a_routine_look_always_plays_plain_decoding() -> None:
    """Nothing else shows that speculation has come to cost more than it brings."""
    found = (option(0, -0.4), option(1, -0.2), option(3, -0.01, 0.05))

    assert arms_to_try(4, found, a_policy(), routine=True) == (0, 3)


def test_from_plain_decoding_at_least_the_most_promising_length_is_tried() -> None:
    """Else speculation never came back."""
    found = (option(1, -0.5), option(2, -0.3), option(3, -0.4))

    assert arms_to_try(0, found, a_policy(), routine=True) == (2,)


def test_the_user_may_forbid_plain_decoding_in_trials_too() -> None:
    """Bounds hold for trials as well."""
    found = (option(2, -0.4), option(3, -0.2))

    assert arms_to_try(4, found, a_policy(low=2), routine=True) == ()


def test_a_length_that_contradicted_itself_is_asked_again() -> None:
    """What is known of it is in doubt."""
    found = (Option(2, -0.5, -0.5, 0.01, measured=True, doubted=True), option(1, -0.5))

    assert arms_to_try(4, found, a_policy(), routine=False) == (2,)


def test_a_look_has_at_most_six_lengths() -> None:
    """Its rounds would never end."""
    policy = a_policy(choices=tuple(range(1, 17)))
    found = tuple(option(k, 0.0, 0.4, measured=False) for k in policy.arms)

    assert len(arms_to_try(16, found, policy, routine=False)) == 6


# How long.


@pytest.mark.parametrize("steps", [0, 10, 100, 1000, 100_000])
@pytest.mark.parametrize("replicas", [1, 3, 1000])
def test_blocks_and_rounds_have_limits(steps: float, replicas: int) -> None:
    """The plugin refuses what is beyond them."""
    asked = trial((1, 64), (0, 1, 2), a_policy(), steps, replicas)

    assert SHORTEST_BLOCK <= asked.block <= LONGEST_BLOCK
    assert 2 <= asked.rounds <= 40


def test_many_replicas_need_fewer_rounds() -> None:
    """They share their evidence."""
    alone = trial((1, 64), (0, 1), a_policy(), 1000, 1)
    many = trial((1, 64), (0, 1), a_policy(), 1000, 3)

    assert many.rounds < alone.rounds


def test_neighbouring_buckets_share_a_trial() -> None:
    """A trial file has few rows."""
    asked = trials({4: (0, 2), 8: (0, 2), 16: (1,)}, a_policy(), steps=1000, replicas=1)

    assert [(t.batch, t.arms) for t in asked] == [((3, 8), (0, 2)), ((9, 16), (1,))]


def test_buckets_apart_have_trials_of_their_own() -> None:
    """The sizes between them are not on trial."""
    asked = trials({4: (0, 2), 16: (0, 2)}, a_policy(), steps=1000, replicas=1)

    assert [t.batch for t in asked] == [(3, 4), (9, 16)]


def test_a_trial_ends_at_the_largest_batch() -> None:
    """No larger batch can be played."""
    (asked,) = trials({64: (0,)}, a_policy(max_num_seqs=50), steps=1000, replicas=1)

    assert asked.batch == (33, 50)


# When.


def opened(state: State) -> tuple[Trial, ...]:
    return state.look.trials if state.look and not state.look.over else ()


def test_a_look_goes_on_until_its_rounds_are_played() -> None:
    """Half of it would compare unequal loads."""
    policy = a_policy()
    decision = first(policy)
    window = replace(Traffic(GOOD).played(decision), trials_over=False)

    state = looked(replace(decision.state, windows=1), window, policy, None)

    assert opened(state) == opened(decision.state)


def test_a_look_whose_load_went_elsewhere_ends_after_all() -> None:
    """Its rounds would never be played."""
    policy = a_policy()
    start = first(policy)
    away = replace(Traffic(GOOD).window({4: 400}), trials_over=False)

    state = looked(replace(start.state, windows=12), away, policy, None)

    assert opened(state) != opened(start.state)


def test_traffic_at_a_new_batch_size_is_looked_at_at_once() -> None:
    """Whatever the wait that was reached at the old one."""
    policy = a_policy()
    settled = course(policy, [Traffic(GOOD)] * 60)[-1]
    assert opened(settled.state) == ()

    after = course(policy, [Traffic(GOOD, batch=32)], start=settled)[-1]

    assert {t.batch: t.arms for t in opened(after.state)}[17, 32] == (0, 1, 2, 3)


def test_a_smaller_trial_share_ends_a_look_that_takes_more() -> None:
    """The user's word counts at once."""
    policy = a_policy()
    start = first(policy)

    less = looked(start.state, None, replace(policy, trial_share=0.02), None)
    none = looked(start.state, None, replace(policy, trial_share=0.0), None)

    assert {t.share for t in opened(less)} == {0.02}
    assert opened(none) == ()
