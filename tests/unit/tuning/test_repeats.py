"""Prompts that are all the same."""

from __future__ import annotations

import pytest

from speculative_operator.tuning.page import Prompts
from speculative_operator.tuning.repeats import Repeats


def after(windows: int, prompts: Prompts | None, known: Repeats | None = None) -> Repeats:
    repeats = known or Repeats()
    for _ in range(windows):
        repeats = repeats.after(prompts)
    return repeats


def test_a_load_generator_with_one_prompt_is_told() -> None:
    """Its acceptance is of that prompt."""
    assert after(10, Prompts(8, 8)).said


@pytest.mark.parametrize("repeated", [0, 4, 7])
def test_real_traffic_repeats_some(repeated: int) -> None:
    """Users ask again, and samplers ask for several answers."""
    assert not after(50, Prompts(8, repeated)).said


def test_a_few_equal_prompts_are_chance() -> None:
    """A window of few requests says little."""
    assert not after(3, Prompts(4, 4)).said


def test_real_prompts_end_it() -> None:
    """No latch."""
    assert not after(10, Prompts(8, 0), after(20, Prompts(8, 8))).said


def test_a_share_in_between_changes_nothing() -> None:
    """Neither begins nor ends it, so it does not flap."""
    said = after(20, Prompts(10, 10))

    assert after(20, Prompts(10, 9), said).said
    assert not after(20, Prompts(10, 9)).said


def test_engines_that_count_no_prompts_say_nothing() -> None:
    """No evidence is never zero."""
    assert after(20, None) == Repeats()
