"""Acceptance of one batch bucket against that of all: when it is corrected, and when it is not."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest

from speculative_operator.tuning.acceptance import Acceptance
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.unlike import chance, offsets, shifted
from speculative_operator.tuning.window import Window, merged
from tests.support.windows import Traffic, a_policy, course, lengths


def geometric(a: float, k: int = 4) -> tuple[float, ...]:
    """p_i where each token is accepted with the chance a after those before it."""
    return tuple(a**i for i in range(1, k + 1))


def jittered(a: float, chance: random.Random) -> tuple[float, ...]:
    """The same with the prompts of a window."""
    return geometric(1 / (1 + (1 / a - 1) * math.exp(chance.gauss(0.0, 0.1))))


EASY, HARD = 0.85, 0.4
STEP_MS = {0: 10.0, 1: 12.0, 2: 14.0, 3: 16.0, 4: 18.0}
"""At these step times K=4 is best with EASY, K=1 with HARD."""


def after(windows: Sequence[Window]) -> Acceptance:
    acceptance = Acceptance()
    for window in windows:
        acceptance = acceptance.after(window, SEQUENTIAL)
    return acceptance


def length(acceptance: Acceptance, bucket: int, k: int) -> float:
    """E(K) at a batch size."""
    return math.exp(acceptance.lengths_at((bucket,), (k,), SEQUENTIAL)[bucket][k].mean)


def both(easy: Mapping[int, int], hard: Mapping[int, int]) -> Window:
    """One window of easy prompts at batch 4 and of hard ones at batch 16."""
    at_4 = Traffic(geometric(EASY)).window(easy)
    at_16 = Traffic(geometric(HARD), batch=16).window(hard)
    return merged([at_4, at_16])


@pytest.mark.parametrize("k", [1, 2, 4, 7, 15])
@pytest.mark.parametrize("a", [0.05, 0.3, 0.7, 0.95])
def test_an_offset_multiplies_the_logarithm_of_every_position(a: float, k: int) -> None:
    """Exactly so where each token has the same chance."""
    brought = sum(geometric(a, k))

    assert math.exp(chance(brought, k).log) == pytest.approx(a, rel=1e-3)
    expected = sum(geometric(a**1.5, k))
    assert shifted(brought, k, math.log(1.5)) == pytest.approx(expected, rel=1e-3)
    assert shifted(brought, k, 0.0) == brought


def test_each_bucket_is_told_by_its_own_drafts() -> None:
    """Both have been seen at the same K; what is shared alone would be wrong for both."""
    acceptance = after([both({4: 200}, {4: 50})] * 20)

    assert length(acceptance, 4, 4) == pytest.approx(1 + sum(geometric(EASY)), rel=0.03)
    assert length(acceptance, 16, 4) == pytest.approx(1 + sum(geometric(HARD)), rel=0.03)


def test_buckets_that_play_different_lengths_are_compared_all_the_same() -> None:
    """A row at K=4 that is all of easy prompts must not tempt those with hard ones."""
    acceptance = after([both({4: 200}, {1: 50})] * 20)

    assert length(acceptance, 16, 4) == pytest.approx(1 + sum(geometric(HARD)), rel=0.1)
    assert length(acceptance, 4, 1) == pytest.approx(1 + EASY, rel=0.03)


def test_a_bucket_that_is_alone_is_never_corrected() -> None:
    """It is all of the traffic."""
    acceptance = after([Traffic(geometric(EASY)).window({4: 300, 2: 40})] * 5)

    assert offsets(acceptance.rows, SEQUENTIAL) == {}
    assert acceptance.lengths_at((4,), (2, 4), SEQUENTIAL)[4] == acceptance.lengths(
        (2, 4), SEQUENTIAL
    )


def test_a_bucket_that_was_not_seen_takes_what_all_have_shown() -> None:
    """No evidence is no correction."""
    acceptance = after([Traffic(geometric(EASY)).window({4: 300})] * 5)

    assert length(acceptance, 16, 4) == length(acceptance, 4, 4)


def test_few_drafts_correct_little() -> None:
    """A difference that chance may have made is none."""
    sometimes = Traffic(geometric(0.6), batch=16)
    most = Traffic(geometric(0.7)).window({4: 300})
    few = after([most] * 19 + [merged([most, sometimes.window({4: 1})])])
    many = after([merged([most, sometimes.window({4: 50})])] * 20)

    assert length(many, 16, 4) == pytest.approx(1 + sum(geometric(0.6)), rel=0.03)
    assert length(few, 16, 4) == pytest.approx(1 + sum(geometric(0.7)), rel=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_the_prompts_of_the_minute_are_no_difference_between_buckets(seed: int) -> None:
    """Load goes to and fro with the same prompts: most of what it looks like is noise."""
    dice = random.Random(seed)
    windows = [
        Traffic(jittered(0.7, dice), batch=dice.choice((1, 4, 16, 64))).window({4: 100})
        for _ in range(60)
    ]
    acceptance = after(windows)
    off = [length(acceptance, bucket, 4) - length(acceptance, 1, 4) for bucket in (4, 16, 64)]

    assert max(map(abs, off)) < 0.12
    assert acceptance.former == {}


def test_load_that_moves_to_other_prompts_is_no_change_of_traffic() -> None:
    """What was known at the first batch size still holds there when load comes back."""
    there = [Traffic(geometric(0.8)).window({4: 300})] * 10
    here = [Traffic(geometric(0.65), batch=16).window({4: 80})] * 10
    acceptance = after([*there, *here])

    assert acceptance.former == {}
    assert length(acceptance, 4, 4) == pytest.approx(1 + sum(geometric(0.8)), rel=0.04)
    assert length(acceptance, 16, 4) == pytest.approx(1 + sum(geometric(0.65)), rel=0.04)


def alternating(easy: float, hard: float, windows: int = 80) -> list[int]:
    """K that is best in the end at batch 4 and 16, under prompts that go with the load."""
    dice = random.Random(1)
    policy = a_policy(minimum_gain=0.0)
    traffic = []
    for number in range(windows):
        a, batch = ((easy, 4), (hard, 16))[number // 4 % 2]
        traffic.append(Traffic(jittered(a, dice), STEP_MS, batch, steps=1600 // batch))
    last = course(policy, traffic, chance=dice)
    return [lengths(last, batch)[-1] for batch in (4, 16)]


def test_two_buckets_of_different_acceptance_get_different_lengths() -> None:
    """The same step times at both, so it is the acceptance alone."""
    assert alternating(EASY, HARD) == [4, 1]


def test_two_buckets_of_the_same_acceptance_get_the_same_length() -> None:
    """Nothing is lost by the correction where there is nothing to correct."""
    assert alternating(EASY, EASY) == [4, 4]
    assert alternating(HARD, HARD) == [1, 1]


def test_what_comes_back_with_older_rows_is_their_buckets_too() -> None:
    """A row and its parts are of the same drafts."""
    sound = after([both({4: 200}, {4: 50})] * 10)
    dead = Traffic((0.1, 0.0, 0.0, 0.0)).window({4: 300})
    again = sound
    for _ in range(3):
        again = again.after(dead, SEQUENTIAL)
    again = again.after(both({4: 200}, {4: 50}), SEQUENTIAL)

    assert length(again, 16, 4) == pytest.approx(length(sound, 16, 4), rel=0.02)
    for row in again.rows.values():
        assert sum(part.drafts for part in row.buckets.values()) == pytest.approx(row.drafts)
