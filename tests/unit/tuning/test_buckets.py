"""Cells become buckets, buckets a table."""

from __future__ import annotations

import itertools

import pytest

from speculative_operator.tuning.buckets import (
    batch_range,
    bucket_of,
    step_times,
    table_of,
    traffic,
)
from speculative_operator.tuning.page import EDGES, Phase, RowKey
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.window import Window
from tests.support.windows import Traffic


@pytest.mark.parametrize(
    ("cell", "bucket"),
    [(1, 1), (2, 2), (3, 4), (4, 4), (6, 8), (8, 8), (12, 16), (384, 512), (1024, 1024)],
)
def test_cells_are_merged_by_powers_of_two(cell: int, bucket: int) -> None:
    """Few buckets fill with evidence soon."""
    assert bucket_of(cell) == bucket


def test_what_lies_above_all_edges_belongs_to_the_last_bucket() -> None:
    """The engine's last cell has no upper edge."""
    assert bucket_of(None) == 1024


def test_every_batch_size_of_a_cell_is_in_its_bucket() -> None:
    """Else evidence would count for batch sizes it is not of."""
    low = 1
    for edge in EDGES:
        first, last = batch_range(bucket_of(edge))
        assert first <= low <= edge <= last
        low = edge + 1


def test_only_decode_steps_are_timed() -> None:
    """A step with prompt tokens costs what its prompt costs."""
    row = Traffic().row(4, 100)
    window = Window(
        seconds=5.0,
        rows={RowKey(4, 4, Phase.DECODE): row, RowKey(2, 4, Phase.MIXED): row},
    )

    assert [time.k for time in step_times(window, 4)[4]] == [4]


def test_step_times_are_kept_apart_by_cell() -> None:
    """A batch of 17 against one of 24 would read as a difference of K."""
    row = Traffic().row(4, 100)
    rows = {RowKey(k, cell, Phase.DECODE): row for k in (0, 4) for cell in (24, 32)}

    cells = step_times(Window(seconds=5.0, rows=rows), 32)

    assert {cell: sorted(t.k for t in times) for cell, times in cells.items()} == {
        24: [0, 4],
        32: [0, 4],
    }


def test_traffic_is_requests_times_steps() -> None:
    """The bucket that most requests meet weighs most."""
    assert traffic(Traffic(batch=16).window({4: 10})) == {16: 160}


def test_a_table_covers_every_batch_size_once() -> None:
    """vLLM refuses gaps and overlaps."""
    table = table_of({4: 4, 64: 1}, 256)

    assert table == ((1, 16, 4), (17, 256, 1))


def test_a_table_ends_at_the_largest_batch() -> None:
    """The last row must reach maxNumSeqs and no further."""
    for largest in (1, 3, 5, 100, 256, 1024):
        table = table_of({1: 2, 8: 0}, largest)
        assert table[0][0] == 1
        assert table[-1][1] == largest
        assert all(b[0] == a[1] + 1 for a, b in itertools.pairwise(table))


def test_a_seen_bucket_has_its_own_length() -> None:
    """Only unseen sizes borrow from a neighbour."""
    table = table_of({1: 7, 8: 3, 256: 0}, 256)

    assert [length_at(table, batch) for batch in (1, 8, 256)] == [7, 3, 0]
