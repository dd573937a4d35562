"""The schedule file: which proposal length K each batch size plays, and which trials to run.

    {"protocol":1,"lease":["<uid>",n],"table":[[1,16,4],[17,256,0]],
     "trials":[{"batch":[1,16],"arms":[0,2],"share":0.1,"block":20,"rounds":30}]}

`table` reads as vLLM's `num_speculative_tokens_per_batch_size`: inclusive ranges of scheduled
requests that start at 1, ascend and do not overlap; gaps and the tail carry the last K on.
Unknown keys are ignored. A schedule is identified by the first 12 hex digits of the SHA-256 of the
file's bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from live_speculation import PROTOCOL

MAX_BYTES = 64 * 1024
MAX_TABLE_ROWS = 256
MAX_TRIALS = 32
MAX_ARMS = 16
MIN_SHARE = 0.001
MAX_COUNT = 1_000_000
"""The largest batch size, block and number of rounds: beyond it a number is a mistake."""

TableRow = tuple[int, int, int]


class ScheduleRefused(ValueError):
    """The file cannot be a schedule for this engine; the text says where and why."""


@dataclass(frozen=True)
class Trial:
    """Blocks of `block` steps at each of `arms` in turn, `share` of all steps in `batch`."""

    batch: tuple[int, int]
    arms: tuple[int, ...]
    share: float
    block: int
    rounds: int


@dataclass(frozen=True)
class Schedule:
    """One valid file."""

    digest: str
    table: tuple[TableRow, ...]
    trials: tuple[Trial, ...] = ()
    lease: tuple[str, int] | None = None


def digest(data: bytes) -> str:
    """The identity of a schedule file: 12 hex digits."""
    return hashlib.sha256(data).hexdigest()[:12]


def dense(table: Sequence[TableRow], max_batch: int) -> list[int]:
    """K by batch size, as vLLM's scheduler reads it: index 0 is unused, then 1 … `max_batch`."""
    lengths = [0] * (max_batch + 1)
    for low, _, length in table:
        if low <= max_batch:
            lengths[low:] = [length] * (max_batch + 1 - low)
    return lengths


def parse(data: bytes, allowed: Collection[int]) -> Schedule:
    """The schedule in `data` for an engine that can play the lengths `allowed`.

    Raises `ScheduleRefused` for everything else, whatever the bytes are.
    """
    if len(data) > MAX_BYTES:
        raise ScheduleRefused(f"larger than {MAX_BYTES} bytes")
    try:
        return _schedule(data, _json(data), allowed)
    except RecursionError as error:
        raise ScheduleRefused("nested too deeply") from error


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError as error:
        raise ScheduleRefused(f"not JSON: {error}") from error


def _schedule(data: bytes, content: object, allowed: Collection[int]) -> Schedule:
    if not isinstance(content, dict):
        raise ScheduleRefused("not a JSON object")
    if content.get("protocol") != PROTOCOL:
        raise ScheduleRefused(
            f"protocol: must be {PROTOCOL}, not {_shown(content.get('protocol'))}"
        )
    return Schedule(
        digest=digest(data),
        table=_table(content.get("table"), allowed),
        trials=_trials(content.get("trials", []), allowed),
        lease=_lease(content.get("lease")),
    )


def _table(listed: object, allowed: Collection[int]) -> tuple[TableRow, ...]:
    rows = _sequence(listed, "table", 1, MAX_TABLE_ROWS)
    table: list[TableRow] = []
    next_low = 1
    for index, row in enumerate(rows):
        where = f"table[{index}]"
        start, end, value = _sequence(row, where, 3, 3)
        low, high = _range(start, end, where)
        length = _length(value, where, allowed)
        if index == 0 and low != 1:
            raise ScheduleRefused(f"{where}: the first range must start at 1, not {low}")
        if low < next_low:
            raise ScheduleRefused(f"{where}: overlaps the range before it or is out of order")
        next_low = high + 1
        table.append((low, high, length))
    return tuple(table)


def _trials(value: object, allowed: Collection[int]) -> tuple[Trial, ...]:
    trials = tuple(
        _trial(trial, f"trials[{index}]", allowed)
        for index, trial in enumerate(_sequence(value, "trials", 0, MAX_TRIALS))
    )
    ranges = sorted(trial.batch for trial in trials)
    for (_, high), (low, _) in itertools.pairwise(ranges):
        if low <= high:
            raise ScheduleRefused(f"trials: two of them cover batch size {low}")
    return trials


def _trial(value: object, where: str, allowed: Collection[int]) -> Trial:
    if not isinstance(value, dict):
        raise ScheduleRefused(f"{where}: not a JSON object")
    start, end = _sequence(value.get("batch"), f"{where}.batch", 2, 2)
    arms = _sequence(value.get("arms"), f"{where}.arms", 1, MAX_ARMS)
    share = value.get("share")
    if isinstance(share, bool) or not isinstance(share, int | float) or not MIN_SHARE <= share <= 1:
        raise ScheduleRefused(f"{where}.share: must be from {MIN_SHARE} to 1, not {_shown(share)}")
    return Trial(
        batch=_range(start, end, f"{where}.batch"),
        arms=tuple(_length(arm, f"{where}.arms", allowed) for arm in arms),
        share=float(share),
        block=_count(value.get("block"), f"{where}.block"),
        rounds=_count(value.get("rounds"), f"{where}.rounds"),
    )


def _lease(value: object) -> tuple[str, int] | None:
    if value is None:
        return None
    uid, transitions = _sequence(value, "lease", 2, 2)
    if not isinstance(uid, str) or len(uid) > 128:
        raise ScheduleRefused("lease[0]: must be a text of at most 128 characters")
    if not _is_integer(transitions) or not 0 <= transitions < 2**63:
        raise ScheduleRefused(f"lease[1]: must be a count, not {_shown(transitions)}")
    return uid, transitions


def _range(low: object, high: object, where: str) -> tuple[int, int]:
    first, last = _count(low, where), _count(high, where)
    if first > last:
        raise ScheduleRefused(f"{where}: starts at {first} and ends before it, at {last}")
    return first, last


def _length(value: object, where: str, allowed: Collection[int]) -> int:
    if not _is_integer(value) or value not in allowed:
        lengths = ", ".join(map(str, sorted(allowed)))
        raise ScheduleRefused(f"{where}: K must be one of {lengths}, not {_shown(value)}")
    return value


def _count(value: object, where: str) -> int:
    if not _is_integer(value) or not 1 <= value <= MAX_COUNT:
        raise ScheduleRefused(f"{where}: must be from 1 to {MAX_COUNT}, not {_shown(value)}")
    return value


def _sequence(value: object, where: str, shortest: int, longest: int) -> list[Any]:
    if not isinstance(value, list) or not shortest <= len(value) <= longest:
        size = str(longest) if shortest == longest else f"{shortest} to {longest}"
        raise ScheduleRefused(f"{where}: must be a list of {size} entries, not {_shown(value)}")
    return value


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**12 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."
