"""The start schedule decides which proposal lengths have graphs, and up to which batch."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api import defaults
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.model import plan
from speculative_operator.plan.schedule import (
    base_table,
    fixed_table,
    needs_schedule,
    start_table,
)
from tests.unit.plan.builders import EAGLE3, SETTINGS, a_model

FIXED = {
    **EAGLE3,
    "proposalLength": {
        "perBatch": [
            {"minBatch": 1, "maxBatch": 16, "proposalLength": 5},
            {"minBatch": 33, "maxBatch": 64, "proposalLength": 2},
            {"minBatch": 65, "maxBatch": 512, "proposalLength": 0},
        ]
    },
}
OFF = {"mode": "Off"}


def test_each_length_gets_one_batch_size_at_the_top() -> None:
    """There a length has graphs for nearly the full batch; at small batches for tiny ones only."""
    assert start_table(((1, 256, 7),), (1, 2, 3, 5, 7)) == (
        (1, 251, 7),
        (252, 252, 5),
        (253, 253, 3),
        (254, 254, 2),
        (255, 255, 1),
        (256, 256, 0),
    )


def test_a_fixed_table_is_kept_below_the_top() -> None:
    """It is what the engine plays until its schedule file is read."""
    assert start_table(((1, 32, 5), (33, 64, 2), (65, 256, 0)), (2, 5)) == (
        (1, 32, 5),
        (33, 64, 2),
        (65, 254, 0),
        (255, 255, 5),
        (256, 256, 2),
    )


def test_rows_that_lie_in_the_top_alone_are_cut() -> None:
    """A narrow last row must not push the others out of the table."""
    assert start_table(((1, 7, 3), (8, 8, 1)), (1, 3)) == ((1, 6, 3), (7, 7, 3), (8, 8, 0))


def test_too_few_batch_sizes_are_refused_in_words() -> None:
    """vLLM would start, and the lengths without a row would never have graphs."""
    with pytest.raises(ModelInvalid) as refusal:
        plan(a_model(model={"maxNumSeqs": 4}), SETTINGS)

    assert str(refusal.value) == (
        "spec.model.maxNumSeqs: 4 is too few for 6 proposal lengths (0, 1, 2, 3, 5, 7), since each "
        "needs a batch size of its own in the start schedule. Write maxNumSeqs: 6 or more, or list "
        "fewer spec.speculation.proposalLength.choices."
    )


def test_just_enough_batch_sizes_are_accepted() -> None:
    """The neighbour of the refusal."""
    assert plan(a_model(model={"maxNumSeqs": 6}), SETTINGS).facts.schedule


@pytest.mark.parametrize(
    ("sections", "scheduled"),
    [
        ({}, True),
        ({"tuning": {"mode": "Recommend"}}, True),
        ({"tuning": OFF}, False),
        ({"tuning": OFF, "speculation": FIXED}, True),
        ({"speculation": {"method": "suffix"}}, False),
        ({"speculation": {"method": "none"}}, False),
        ({"speculation": {"method": "ngram"}}, True),
        (
            {
                "accelerator": {"products": ["MI300X"], "count": 2},
                "parallelism": {"data": 2},
            },
            False,
        ),
    ],
    ids=str,
)
def test_who_starts_with_a_schedule(sections: dict[str, Any], scheduled: bool) -> None:
    """A schedule costs speed without full graphs, and vLLM drops it where it cannot be used."""
    assert needs_schedule(a_model(**sections).spec) is scheduled


def test_gaps_and_the_tail_of_a_fixed_table_carry_the_last_length_on() -> None:
    """As in vLLM; the table that is written is without gaps and ends at the largest batch."""
    spec = a_model(speculation=FIXED).spec

    assert fixed_table(spec, defaults.choices(spec)) == ((1, 32, 5), (33, 64, 2), (65, 256, 0))


def test_without_a_fixed_table_the_initial_length_is_played() -> None:
    """That is what tuning that is off means."""
    spec = a_model(speculation={**EAGLE3, "proposalLength": {"initial": 3}}).spec

    assert fixed_table(spec, defaults.choices(spec)) == ((1, 256, 3),)


def test_a_length_that_the_engine_lacks_is_played_as_the_next_shorter_one() -> None:
    """The table may be edited while pods run that have graphs for other lengths."""
    spec = a_model(speculation=FIXED).spec

    assert fixed_table(spec, (1, 3)) == ((1, 32, 3), (33, 64, 1), (65, 256, 0))


def test_a_fixed_table_is_the_start_only_while_tuning_is_off() -> None:
    """With tuning on it would bring the tuner's first windows to the wrong length."""
    assert base_table(a_model(speculation=FIXED).spec) == ((1, 256, 7),)
    assert base_table(a_model(speculation=FIXED, tuning=OFF).spec)[0] == (1, 32, 5)
