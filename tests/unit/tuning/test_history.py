"""What the history holds of a decision, and that it can be read back."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.history import (
    BLOCK,
    CHECKPOINT,
    Entry,
    History,
    entries,
    kept,
    to_line,
)
from speculative_operator.tuning.occasion import Occasion, Running
from speculative_operator.tuning.page import Prompts
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window
from tests.support.windows import Traffic, a_policy, first


def entry_of(window: Window | None, state: State, policy: Policy, at: float) -> Entry:
    """What the tuner would keep of this decision."""
    plain = kept(Traffic().window({0: 70})) if at > 30.0 else None
    occasion = Occasion(at, "now", Running(1, int(plain is not None), 2, 90.5, plain))
    decision = decide(window, state, policy, occasion)
    return Entry(
        key="revision",
        policy=policy,
        occasion=occasion,
        window=window,
        table=decision.table,
        trials=decision.trials,
        changes=decision.changes,
        variant=decision.variant,
        sensor=decision.sensor,
        before=state,
    )


def played(windows: int, *, seed: int = 0) -> list[Entry]:
    """The entries of so many windows of noisy traffic, each with its state."""
    chance, policy = random.Random(seed), a_policy()
    found = [entry_of(None, State(), policy, 0.25)]
    decision = first(policy)
    for number in range(windows):
        traffic = Traffic(batch=chance.choice((1, 4, 16)))
        window = replace(
            kept(traffic.played(decision, chance)), replicas=3, prompts=Prompts(40, number)
        )
        entry = entry_of(window, decision.state, policy, 5.0 * number + chance.random())
        decision = decide(window, decision.state, policy, entry.occasion)
        found.append(entry)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_an_entry_comes_back_bit_by_bit(seed: int) -> None:
    """What was decided can only be decided again on the very same numbers."""
    for entry in played(20, seed=seed):
        assert list(entries([to_line(entry)])) == [entry]


def test_a_window_is_kept_to_nine_digits_and_whole_numbers_as_such() -> None:
    """Times have noise of percents; a count that lost one would not be a count."""
    window = Traffic().window({4: 333_333}, random.Random(1))

    short = kept(window)

    assert kept(short) == short
    for key, counts in short.rows.items():
        assert counts == pytest.approx(window.rows[key], rel=1e-8)
        assert (counts.steps, counts.requests) == (333_333, 4 * 333_333)


def test_the_first_entry_since_a_start_and_every_hundredth_hold_their_state() -> None:
    """Replay begins there; states in all of them would be most of the history."""
    (entry,) = played(0)
    history = History.of(to_line(old) for old in played(3))

    for _ in range(2 * CHECKPOINT + 1):
        history = history.after(entry)

    new = list(entries(history.lines))[4:]
    assert [n for n, entry in enumerate(new) if entry.before is not None] == [
        0,
        CHECKPOINT,
        2 * CHECKPOINT,
    ]


def test_the_oldest_of_500_entries_goes() -> None:
    """A ConfigMap has a limit of size."""
    (entry,) = played(0)
    history = History()

    for number in range(502):
        history = history.after(replace(entry, occasion=Occasion(float(number))))

    assert [entry.at for entry in entries(history.lines)] == list(range(2, 502))


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 499, 500, 501, 777])
def test_what_was_saved_is_gone_on_from_line_by_line(count: int) -> None:
    """However many there are, and however they are held."""
    lines = tuple(f'{{"t":{number}}}' for number in range(count))

    assert History.of(lines).lines == lines[-500:]


def test_a_full_history_is_held_in_a_fraction_of_its_text() -> None:
    """An operator holds those of all its models, and has a limit of memory."""
    lines = [to_line(replace(entry, before=None)) for entry in played(50)] * 10

    history = History.of(lines)

    held = sum(map(len, (*history.packed, *history.late)))
    assert held < 0.3 * sum(map(len, history.lines))


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"t":1,"key":"a","rows":[]}'])
def test_a_line_of_another_version_is_passed_over(line: str) -> None:
    """It costs itself and not the others."""
    (entry,) = played(0)

    assert list(entries([line, to_line(entry)])) == [entry]
