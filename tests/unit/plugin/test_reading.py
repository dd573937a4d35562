"""Reading the schedule file: by content, and never hurt by what it finds."""

import json
import os
import threading
from pathlib import Path

import pytest

from live_speculation.live import Engine, LiveSpeculation
from live_speculation.reading import ScheduleReader, read_in_background
from live_speculation.schedule import MAX_BYTES, Schedule, digest

ENGINE = Engine("0.33.0", "V1", "ngram", capacity=4, max_batch=8, lengths=frozenset(range(5)))


def file_for(length: int) -> bytes:
    return json.dumps({"protocol": 1, "table": [[1, 8, length]]}).encode()


class Reading:
    """A reader of one file in a folder, and its live speculation."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "schedule.json"
        self.live = LiveSpeculation(ENGINE)
        self.reader = ScheduleReader(self.path, self.live)

    def after(self, data: bytes) -> LiveSpeculation:
        self.path.write_bytes(data)
        self.reader.poll()
        return self.live


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return Reading(tmp_path)


def read_digest(live: LiveSpeculation) -> str | None:
    return live.read.digest if live.read else None


def test_a_valid_file_is_offered(reading: Reading) -> None:
    """Then the next step plays it."""
    live = reading.after(file_for(2))

    assert read_digest(live) == digest(file_for(2))
    assert live.error == ""
    assert live.table(0.0) == [0] + [2] * 8


def test_a_change_is_seen_even_if_the_time_stamp_stays(reading: Reading) -> None:
    """A ConfigMap's files can keep their time, and clocks are coarse."""
    reading.after(file_for(2))
    stamp = reading.path.stat()
    reading.path.write_bytes(file_for(3))
    os.utime(reading.path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    reading.reader.poll()

    assert read_digest(reading.live) == digest(file_for(3))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\x00" * 100, b"x" * (MAX_BYTES + 1), file_for(9)], ids=len
)
def test_a_broken_file_keeps_the_schedule_and_sets_the_error(reading: Reading, data: bytes) -> None:
    """The pod goes on with what it had; the operator reads why."""
    reading.after(file_for(2))
    live = reading.after(data)

    assert read_digest(live) == digest(file_for(2))
    assert live.table(0.0) == [0] + [2] * 8
    assert live.error.startswith(str(reading.path))


def test_a_missing_file_keeps_the_schedule(reading: Reading) -> None:
    """A ConfigMap that was deleted for a moment stops nothing."""
    reading.after(file_for(2))
    reading.path.unlink()
    reading.reader.poll()

    assert read_digest(reading.live) == digest(file_for(2))
    assert "No such file" in reading.live.error


def test_the_error_goes_when_the_same_file_is_back(reading: Reading) -> None:
    """An error that stays would be an alarm for ever."""
    reading.after(file_for(2))
    reading.after(b"{")
    live = reading.after(file_for(2))

    assert live.error == ""


def test_a_folder_in_the_files_place_is_an_error(reading: Reading) -> None:
    """A mount without `subPath` makes one."""
    reading.path.mkdir()
    reading.reader.poll()

    assert "not a regular file" in reading.live.error


def test_a_pipe_in_the_files_place_blocks_nothing(reading: Reading) -> None:
    """Opening one waits for a writer that may never come."""
    os.mkfifo(reading.path)
    reading.reader.poll()

    assert "not a regular file" in reading.live.error


def test_the_thread_reads_while_no_step_runs(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle engine must still report what it has read."""
    offered, stop = threading.Event(), threading.Event()
    offer = reading.live.offer

    def noting(schedule: Schedule) -> None:
        offer(schedule)
        offered.set()

    monkeypatch.setattr(reading.live, "offer", noting)
    reading.path.write_bytes(file_for(1))
    read_in_background(reading.reader, stop)

    assert offered.wait(30)
    stop.set()
    assert read_digest(reading.live) == digest(file_for(1))
    assert reading.live.digest_in_force is None
