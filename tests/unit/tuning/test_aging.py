"""Acceptance that falls with an engine's age, told apart from traffic that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from speculative_operator.tuning.aging import Aging
from speculative_operator.tuning.window import Window
from tests.support.windows import Traffic

HOUR = 3600.0


def window(first: float) -> Window:
    return Traffic((first, first / 2, first / 4, first / 8)).window({4: 100})


def hours(
    known: Aging, first: Callable[[float], float], times: Iterable[float], started: float = 0.0
) -> Aging:
    """Windows at these hours, of an engine whose first tokens are accepted as `first` of its age
    in hours says."""
    for time in times:
        age = time - started
        known = known.after([(age * HOUR, window(first(age)))])
    return known


def span(start: float, end: float) -> list[float]:
    """Hours from start to end, a sixth of an hour apart."""
    return [start + n / 6 for n in range(round((end - start) * 6))]


def decaying(age: float) -> float:
    """Loses 5% of the fresh acceptance an hour."""
    return 0.8 * max(1.0 - 0.05 * age, 0.2)


def steady(age: float) -> float:
    del age
    return 0.8


def test_a_steady_fall_over_hours_is_told() -> None:
    """Nobody watches a number that loses 5% an hour."""
    aged = hours(Aging(), decaying, span(0, 10))

    assert "78% are accepted in the first hour" in aged.message
    assert "4-8 hours" in aged.message


def test_while_no_engine_is_fresh_traffic_may_be_the_cause() -> None:
    """One engine cannot tell the two apart, so it says so."""
    aged = hours(Aging(), decaying, span(0, 10))

    assert not aged.proven
    assert "or traffic has changed" in aged.message


def test_an_engine_that_is_fresh_today_and_accepts_many_proves_it() -> None:
    """The same traffic, another age: a restart mends it."""
    aged = hours(Aging(), decaying, span(0, 10))
    after = hours(aged, decaying, span(10, 11), started=10.0)

    assert after.proven
    assert "the engines age" in after.message


def test_an_engine_that_is_fresh_today_and_accepts_few_ends_it() -> None:
    """Then it was the traffic."""
    aged = hours(Aging(), decaying, span(0, 10))
    for time in [10 + n / 60 for n in range(60)]:
        aged = aged.after([((time - 10) * HOUR, window(0.4))])

    assert aged.message == ""
    assert aged.proof == 0.0


def test_steady_acceptance_is_no_fall() -> None:
    """At any age."""
    assert hours(Aging(), steady, span(0, 40)).message == ""


def test_one_shift_of_traffic_is_no_fall() -> None:
    """It makes two ages differ from the one before, never three."""
    for hour in range(1, 20):

        def shifted(age: float, at: float = hour + 0.5) -> float:
            return 0.8 if age < at else 0.4

        assert hours(Aging(), shifted, span(0, 24)).message == "", hour


def test_traffic_that_comes_and_goes_is_no_fall() -> None:
    """Hard prompts by day, easy ones by night."""
    aged = hours(Aging(), lambda age: 0.8 if age % 6 < 3 else 0.6, span(0, 24))

    assert aged.message == ""


def test_an_engine_seen_only_when_old_says_nothing() -> None:
    """What it did when it was fresh is not known."""
    assert hours(Aging(), decaying, span(3, 20)).message == ""


def test_the_words_stay_while_nothing_new_is_known() -> None:
    """Figures that move every window would write the status every window."""
    aged = hours(Aging(), decaying, span(0, 10))
    texts = set()
    for time in span(10, 12):
        aged = aged.after([(time * HOUR, window(decaying(time)))])
        texts.add(aged.message)

    assert len(texts) == 1
