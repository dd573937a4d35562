"""The schedule file: its text, its hash, and that the plugin reads it as it was meant."""

from __future__ import annotations

import hashlib
import json

import pytest

from live_speculation.schedule import digest, parse
from speculative_operator.tuning.schedule import (
    ScheduleFile,
    Trial,
    joined,
    length_at,
    schedule_hash,
)

TRIAL = Trial(batch=(1, 16), arms=(0, 2), share=0.1, block=20, rounds=30)
FILE = ScheduleFile(((1, 16, 4), (17, 256, 0)), (TRIAL,), ("uid", 3), look=5)


def test_the_text_is_compact_and_in_the_designs_order() -> None:
    """Equal files must be equal bytes: their hash says whether anything changed."""
    assert FILE.to_json() == (
        '{"protocol":1,"lease":["uid",3],"table":[[1,16,4],[17,256,0]],"trials":[{"batch":[1,16],'
        '"arms":[0,2],"share":0.1,"block":20,"rounds":30}],"look":5}'
    )


def test_without_trials_and_lease_there_is_only_the_table() -> None:
    """Absent parts are not written."""
    assert json.loads(ScheduleFile(((1, 8, 2),)).to_json()) == {
        "protocol": 1,
        "table": [[1, 8, 2]],
    }


def test_what_was_written_is_read_back() -> None:
    """A new operator finds its own file."""
    assert ScheduleFile.read(FILE.to_json()) == FILE


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"table":3}', '{"table":[[1,2]]}', "x"])
def test_anything_else_is_no_schedule(text: str) -> None:
    """Somebody edited the ConfigMap: it is written again, not understood half."""
    assert ScheduleFile.read(text) is None


def test_the_hash_is_the_one_that_the_plugin_reports() -> None:
    """Else a schedule would never count as taken up."""
    text = FILE.to_json()

    assert schedule_hash(text) == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert schedule_hash(text) == digest(text.encode())


def test_the_plugin_reads_the_file_as_it_was_meant() -> None:
    """The format has two ends."""
    read = parse(FILE.to_json().encode(), frozenset({0, 2, 4}))

    assert [tuple(row) for row in read.table] == [(1, 16, 4), (17, 256, 0)]
    assert [(tuple(t.batch), tuple(t.arms), t.block, t.rounds) for t in read.trials] == [
        ((1, 16), (0, 2), 20, 30)
    ]


def test_a_new_look_is_a_new_text() -> None:
    """An engine plays trials again only when the bytes change."""
    again = ScheduleFile(FILE.table, FILE.trials, FILE.lease, look=6)

    assert schedule_hash(again.to_json()) != schedule_hash(FILE.to_json())
    assert not again.plays_as(FILE)


def test_another_lease_plays_the_same() -> None:
    """A new leader has no reason to write every model's schedule again."""
    assert FILE.plays_as(ScheduleFile(FILE.table, FILE.trials, ("other", 9), FILE.look))


@pytest.mark.parametrize(("batch", "k"), [(1, 4), (16, 4), (17, 0), (256, 0), (9999, 0)])
def test_k_at_a_batch_size(batch: int, k: int) -> None:
    """Both ends of a row belong to it."""
    assert length_at(FILE.table, batch) == k


def test_neighbours_of_equal_length_become_one_row() -> None:
    """The table that users read is short."""
    assert joined([(1, 4, 2), (5, 8, 2), (9, 64, 1)]) == ((1, 8, 2), (9, 64, 1))
