"""Which trials are asked for, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.looks import LONGEST_WAIT, looked, windows_left
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.schedule import Trial
from speculative_operator.tuning.state import Look, State
from speculative_operator.tuning.trials import LONGEST_BLOCK, SHORTEST_BLOCK, trial, trials
from speculative_operator.tuning.worth import prospects
from tests.support.windows import DEAD, Traffic, a_policy, course, first, looking

GOOD = (0.97, 0.95, 0.93, 0.91)

# How long.


@pytest.mark.parametrize("steps", [0, 10, 100, 1000, 100_000])
def test_blocks_and_rounds_have_limits(steps: float) -> None:
    """The plugin refuses what is beyond them."""
    asked = trial((1, 64), (0, 1, 2), a_policy(), steps)

    assert SHORTEST_BLOCK <= asked.block <= LONGEST_BLOCK
    assert 1 <= asked.rounds <= 100


def test_a_look_lasts_about_a_window() -> None:
    """Then it is decided anew what is worth most."""
    asked = trial((1, 64), (2,), a_policy(), 1000)

    assert asked.rounds * asked.block / asked.share == pytest.approx(1000, rel=0.1)


def test_neighbouring_buckets_share_a_trial() -> None:
    """A trial file has few rows."""
    asked = trials({4: (2,), 8: (2,), 16: (1,), 32: ()}, a_policy(), steps=1000)

    assert [(t.batch, t.arms) for t in asked] == [((3, 8), (2,)), ((9, 16), (1,))]


def test_buckets_apart_have_trials_of_their_own() -> None:
    """The sizes between them are not on trial."""
    asked = trials({4: (2,), 16: (2,)}, a_policy(), steps=1000)

    assert [t.batch for t in asked] == [(3, 4), (9, 16)]


def test_a_trial_ends_at_the_largest_batch() -> None:
    """No larger batch can be played."""
    (asked,) = trials({64: (0,)}, a_policy(max_num_seqs=50), steps=1000)

    assert asked.batch == (33, 50)


# When.


def opened(state: State) -> tuple[Trial, ...]:
    return state.look.trials if state.look and not state.look.over else ()


def a_look(state: State) -> State:
    """The state with a trial of K=1 that has just begun."""
    trials = (Trial((1, 64), (1,), 0.1, 10, 3),)
    return replace(state, look=Look(state.windows, trials))


def test_before_traffic_nothing_is_tried() -> None:
    """What is worth a look depends on what K in force brings."""
    assert opened(first(a_policy()).state) == ()


def test_plain_decoding_is_looked_at_early() -> None:
    """The price of speculation is what is known least."""
    tried = {k for decision in course(a_policy(), [Traffic()] * 8) for k in looking(decision)}

    assert 0 in tried


def test_a_look_goes_on_until_its_rounds_are_played() -> None:
    """Half of it would compare unequal loads."""
    policy = a_policy()
    decision = course(policy, [Traffic(GOOD)] * 20)[-1]
    window = replace(Traffic(GOOD).played(decision), trials_over=False)
    state = a_look(decision.state)

    again = decide(window, state, policy, Occasion(100.0)).state

    assert opened(again) == opened(state)


def test_a_look_whose_load_went_elsewhere_ends_after_all() -> None:
    """Its rounds would never be played."""
    policy = a_policy()
    decision = course(policy, [Traffic(GOOD)] * 20)[-1]
    state = a_look(decision.state)
    away = replace(Traffic(GOOD).window({4: 400}), trials_over=False)

    later = replace(state, windows=state.windows + 12)
    after = looked(later, later.lengths(policy), away, policy, None)

    assert opened(after) != opened(state)


def test_a_look_does_not_wait_for_one_whose_load_went_elsewhere() -> None:
    """Where the load is now, what is unknown costs now."""
    policy = a_policy()
    state = course(policy, [Traffic(GOOD)] * 20)[-1].state
    state = replace(state, look=Look(state.windows, (Trial((33, 64), (1,), 0.1, 10, 3),)))
    here = replace(Traffic(DEAD).window({4: 400}), trials_over=False)

    after = decide(here, state, policy, Occasion(100.0)).state

    assert any(trial.batch[0] <= 4 <= trial.batch[1] for trial in opened(after))


def test_a_look_whose_load_went_elsewhere_stays_while_nothing_is_needed_here() -> None:
    """The load may come back to it; writing it anew would begin it anew."""
    policy = a_policy()
    state = course(policy, [Traffic(GOOD)] * 20)[-1].state
    state = replace(state, look=Look(state.windows, (Trial((33, 64), (1,), 0.1, 10, 3),)))
    here = replace(Traffic(GOOD).window({4: 400}), trials_over=False)

    after = decide(here, state, policy, Occasion(100.0)).state

    assert after.look == state.look


def test_a_smaller_trial_share_ends_a_look_that_takes_more() -> None:
    """The user's word counts at once."""
    policy = a_policy()
    state = a_look(course(policy, [Traffic(GOOD)] * 3)[-1].state)

    less = looked(state, {}, None, replace(policy, trial_share=0.02), None)
    none = looked(state, {}, None, replace(policy, trial_share=0.0), None)

    assert opened(less) == opened(none) == ()


def test_bounds_end_a_look_at_what_they_exclude() -> None:
    """The user's word counts at once."""
    policy = a_policy()
    state = a_look(course(policy, [Traffic(GOOD)] * 3)[-1].state)

    assert opened(looked(state, {}, None, replace(policy, low=2), None)) == ()


def test_at_k_0_speculation_that_would_bring_much_is_looked_at_sooner() -> None:
    """What a change would bring is what is missed by not looking."""
    policy = a_policy()
    dear = {0: 9.6, 1: 40.0, 2: 44.0, 3: 48.0, 4: 52.0}
    state = course(policy, [Traffic(step_ms=dear)] * 30)[-1].state
    bucket = state.buckets[4]
    assert bucket.length == 0
    lengths = state.lengths(policy)[4]
    look = prospects(0, bucket.cost, lengths, policy)[0]

    never_better, twice_as_good = (windows_left(state, bucket, look, g) for g in (0.0, 1.0))

    assert twice_as_good < never_better <= LONGEST_WAIT


def test_a_bucket_that_has_compared_nothing_takes_its_neighbours_costs() -> None:
    """Not every batch size has to look at K=0."""
    policy = a_policy()
    one = course(policy, [Traffic(GOOD)] * 12)[-1]

    both = course(policy, [Traffic(GOOD, batch=8)] * 2, start=one)[-1].state

    assert both.buckets[8].cost.of(4).variance < 0.2**2
    assert both.buckets[8].cost.of(4).mean == pytest.approx(
        both.buckets[4].cost.of(4).mean, abs=0.1
    )


CHEAP_MS = {0: 10.0, 1: 11.0, 2: 12.0, 3: 13.0, 4: 14.0}
"""With these step times K=0 is far behind."""


def looked_again(k: int, step_ms: Mapping[int, float] | None) -> bool:
    """Whether K is looked at where one time alone tells of it, and nothing else is left to see."""
    policy = a_policy(minimum_gain=0.0)
    traffic = Traffic(GOOD, step_ms)
    state = course(policy, [traffic] * 20)[-1].state
    doubted = replace(state.buckets[4], cost=replace(state.buckets[4].cost, alone=frozenset({k})))
    state = replace(state, buckets={4: doubted}, look=None)
    window = traffic.window({4: 400})
    after = looked(state, state.lengths(policy), window, policy, None)
    return k in {arm for trial in opened(after) for arm in trial.arms}


def test_a_k_whose_only_time_may_be_an_outlier_is_looked_at_again() -> None:
    """One outlier on the only look at K=0 would decide for minutes."""
    assert looked_again(0, None)


def test_a_k_too_far_behind_for_an_outlier_is_not() -> None:
    """Even half its time would not make it the best."""
    assert not looked_again(0, CHEAP_MS)


def test_a_second_look_at_a_time_that_stands_alone_takes_few_steps() -> None:
    """Half or twice the time is seen at a glance."""
    policy = a_policy()
    both = trials({4: (1,), 64: (1,)}, policy, steps=1000, short={64})

    assert [each.share for each in both] == pytest.approx([0.1, 0.04])
    assert both[1].block * both[1].rounds < both[0].block * both[0].rounds


def test_a_short_trial_is_not_joined_with_a_long_one() -> None:
    """Neighbours share a trial where they ask for the same."""
    policy = a_policy()

    assert len(trials({4: (1,), 8: (1,)}, policy, steps=1000)) == 1
    assert len(trials({4: (1,), 8: (1,)}, policy, steps=1000, short={8})) == 2
