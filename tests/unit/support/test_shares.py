"""How a run on the real vLLM is judged by its own measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.shares import Stretch, judge

COLUMNS = ["k", "cell", "phase", "steps", "log_us", "log_us_sq"]
MS = {0: 10.0, 2: 15.0, 4: 40.0}
SPREAD = 0.1
ACCEPTED = (0.6, 0.4, 0.2, 0.1)


def page(steps: Mapping[int, int]) -> dict[str, Any]:
    """After so many steps of one request at each K."""
    rows = []
    for k, count in steps.items():
        mean = math.log(1000 * MS[k])
        rows.append([k, 1, "decode", count, count * mean, count * (mean**2 + SPREAD**2)])
    drafted = {k: count for k, count in steps.items() if k}
    positions = [
        [k, at, count, count * ACCEPTED[at]] for k, count in drafted.items() for at in range(k)
    ]
    return {"columns": COLUMNS, "rows": rows, "positions": positions}


def stretch(steps: Mapping[int, int]) -> Stretch:
    """A phase in which those were made."""
    return Stretch("a phase", 1, page({}), page(steps))


def test_what_was_played_is_held_against_the_best_by_the_same_figures() -> None:
    """K=2 makes two tokens in 15 ms, K=0 one in 10, K=4 2.3 in 40."""
    judged = judge([stretch({0: 500, 2: 500, 4: 100})])

    rates = {0: 1 / 10, 2: 2.0 / 15, 4: 2.3 / 40}
    assert judged.shares.fixed == pytest.approx(
        {k: rate / rates[2] for k, rate in rates.items()}, rel=1e-6
    )
    tokens = 500 * 1 + 500 * 2.0 + 100 * 2.3
    milliseconds = 500 * 10 + 500 * 15 + 100 * 40
    assert judged.shares.tuned == pytest.approx(tokens / milliseconds / rates[2])


def test_no_number_of_steps_makes_the_error_vanish() -> None:
    """Steps in a row are alike: as if they were independent it would be a hundredth of this."""
    few = judge([stretch({0: 5_000, 2: 5_000})])
    many = judge([stretch({0: 50_000_000, 2: 50_000_000})])

    assert few.error > 0.005
    assert many.error > 0.005


def test_a_length_of_few_steps_is_not_judged_and_that_is_said() -> None:
    """Else the oracle would be what one lucky step has shown."""
    judged = judge([stretch({0: 500, 2: 500, 4: 12})])

    assert set(judged.shares.fixed) == {0, 2}
    assert any("not judged at batch 1: K=4" in line for line in judged.lines)
