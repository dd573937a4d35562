"""What outlives the operator: estimates per revision, absorbed counters, recent history.

    state.json       {"version":3,"writtenAt":…,"revisions":{<key>:{…}}}, 16 KiB a revision
    base.json        per pod UID and engine start the counters that the estimates contain
    history.json.gz  the last windows and decisions, one JSON a line, oldest first

The first two are saved together, so that a new operator goes on from there: it differences from
the bases, loses nothing and counts nothing twice.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from speculative_operator.tuning.cost import Cost
from speculative_operator.tuning.page import (
    Counters,
    Counts,
    Phase,
    Position,
    Prompts,
    Proposed,
    RowKey,
)
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import Bucket, State

VERSION = 4
"""Of this format. Another one is another version of the whole project, see docs/development.md."""
UNDERSTOOD = frozenset((3, VERSION))
"""Formats that are read as this one: the third had all but the sign `silence`."""
MOST_STATE_BYTES = 16 * 1024
MOST_BASE_BYTES = 192 * 1024
MOST_HISTORY_BYTES = 192 * 1024
MOST_ENTRIES = 500
MOST_REVISIONS = 3
"""Current, trial and last good."""

DIGITS = 5
"""Significant digits of a saved estimate; their errors are far larger."""

PACKING = 6
"""Gzip's level: 9 takes several times as long for the last percent."""

STATE, BASE, HISTORY = "state.json", "base.json", "history.json.gz"

_STATES = TypeAdapter(State)


@dataclass(frozen=True, slots=True)
class Memory:
    """`revisions` by key, the one in use last; `bases` by pod UID; `history` as JSON lines."""

    revisions: Mapping[str, State] = field(default_factory=dict)
    bases: Mapping[str, Counters] = field(default_factory=dict)
    history: tuple[str, ...] = ()
    written_at: float = 0.0

    def with_state(self, key: str, state: State) -> Memory:
        """With the state of a revision; of other revisions the last ones are kept."""
        others = {other: kept for other, kept in self.revisions.items() if other != key}
        recent = list(others.items())[-(MOST_REVISIONS - 1) :]
        return replace(self, revisions={**dict(recent), key: state})


@dataclass(frozen=True, slots=True)
class MemoryData:
    """The memory as a ConfigMap holds it."""

    data: Mapping[str, str]
    binary_data: Mapping[str, bytes]


def to_data(memory: Memory) -> MemoryData:
    """What is written. Too much is cut: buckets with least traffic, then engines, then the past."""
    revisions = {key: _state_body(state) for key, state in memory.revisions.items()}
    state = {"version": VERSION, "writtenAt": memory.written_at, "revisions": revisions}
    history = list(memory.history[-MOST_ENTRIES:])
    packed = _packed(history)
    while len(packed) > MOST_HISTORY_BYTES:
        del history[: len(history) // 4 + 1]
        packed = _packed(history)
    return MemoryData({STATE: _compact(state), BASE: _bases(memory.bases)}, {HISTORY: packed})


def from_data(data: Mapping[str, str], binary_data: Mapping[str, bytes]) -> Memory:
    """What was written; whatever cannot be read is left out, as if it had never been known.

    Estimates and bases belong together: without the one the other is not used.
    """
    try:
        body = json.loads(data[STATE])
        bases = json.loads(data[BASE])
        if body["version"] not in UNDERSTOOD:
            return Memory()
        return Memory(
            revisions={
                str(key): _STATES.validate_python(state) for key, state in body["revisions"].items()
            },
            bases={str(uid): _counters(base) for uid, base in bases.items()},
            history=_unpacked(binary_data.get(HISTORY)),
            written_at=float(body["writtenAt"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, ValidationError):
        return Memory()


def format_of(data: Mapping[str, str]) -> int | None:
    """The format in which something was written; None where nothing was that tells its own."""
    try:
        return int(json.loads(data[STATE])["version"])
    except (KeyError, TypeError, ValueError):
        return None


def moved(before: State, after: State, policy: Policy) -> bool:
    """Whether it is worth a write: an estimate changed by more than its error, or another K was
    tried, which an operator that starts from `before` would take for having happened just now.
    """
    if before.buckets.keys() != after.buckets.keys() or before.broken != after.broken:
        return True
    if before.replicas.odd != after.replicas.odd or before.aging.message != after.aging.message:
        return True
    return after.restart.worth_saving(before.restart) or _estimate_moved(before, after, policy)


def _estimate_moved(before: State, after: State, policy: Policy) -> bool:
    """For the same buckets: step cost or acceptance."""
    for name, bucket in after.buckets.items():
        if _tried(before.buckets[name], bucket) or _cost_moved(
            before.buckets[name].cost, bucket.cost
        ):
            return True
    was = before.acceptance.lengths(policy.choices, policy.prior)
    now = after.acceptance.lengths(policy.choices, policy.prior)
    return any(
        k not in was or (now[k].mean - was[k].mean) ** 2 > was[k].variance
        for k in after.acceptance.rows.keys() & now.keys()
    )


def _tried(before: Bucket, after: Bucket) -> bool:
    """Whether a K that is not in force was timed since."""
    return any(t != before.timed.get(k) for k, t in after.timed.items() if k != after.length)


def _cost_moved(before: Cost, after: Cost) -> bool:
    pairs = ((before.of(k), after.of(k)) for k in after.lengths)
    return any((now.mean - was.mean) ** 2 > was.variance for was, now in pairs)


def _state_body(state: State) -> dict[str, Any]:
    body: dict[str, Any] = _rounded(_STATES.dump_python(state, mode="json"))  # type: ignore[assignment]
    quiet = sorted(state.buckets, key=lambda name: state.buckets[name].traffic)
    while len(_compact(body)) > MOST_STATE_BYTES and quiet:
        del body["buckets"][str(quiet.pop(0))]
    return body


def _rounded(value: JsonValue) -> JsonValue:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < 1e6 else value
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def _bases(bases: Mapping[str, Counters]) -> str:
    kept: dict[str, Any] = {}
    size = 2
    for uid, counters in sorted(bases.items()):
        body = counters_body(counters)
        size += len(_compact(body)) + len(uid) + 4
        if size > MOST_BASE_BYTES:
            break
        kept[uid] = body
    return _compact(kept)


def counters_body(counters: Counters) -> dict[str, Any]:
    """Counters as JSON values."""
    return {
        "pid": counters.pid,
        "started": counters.started,
        "rows": rows_body(counters.rows),
        "positions": positions_body(counters.positions),
        "prompts": counters.prompts,
    }


def rows_body(rows: Mapping[RowKey, Counts]) -> list[list[Any]]:
    """Rows as JSON values: the key's parts, then the sums, exact: they are differenced from."""
    return [[*key, *counts] for key, counts in rows.items()]


def positions_body(positions: Mapping[Position, Proposed]) -> list[list[Any]]:
    """Positions as JSON values: the key's parts, then the sums."""
    return [[*key, *sums] for key, sums in positions.items()]


def read_rows(body: Iterable[list[Any]]) -> dict[RowKey, Counts]:
    """The opposite of `rows_body`."""
    return {
        RowKey(int(k), cell if cell is None else int(cell), Phase(phase)): Counts(*sums)
        for k, cell, phase, *sums in body
    }


def read_positions(body: Iterable[list[Any]]) -> dict[Position, Proposed]:
    """The opposite of `positions_body`."""
    return {Position(int(k), int(at)): Proposed(*sums) for k, at, *sums in body}


def _counters(body: Mapping[str, Any]) -> Counters:
    return Counters(
        pid=int(body["pid"]),
        started=float(body["started"]),
        rows=read_rows(body["rows"]),
        positions=read_positions(body["positions"]),
        prompts=Prompts(*body["prompts"]) if body.get("prompts") else None,
    )


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _packed(lines: list[str]) -> bytes:
    """Gzip without a time, so that equal histories are equal bytes."""
    return gzip.compress("\n".join(lines).encode(), PACKING, mtime=0)


def _unpacked(packed: bytes | None) -> tuple[str, ...]:
    """The lines; none if the bytes are not what was written."""
    try:
        text = gzip.decompress(packed or b"").decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return ()
    return tuple(text.split("\n")) if text else ()
