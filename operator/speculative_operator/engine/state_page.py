"""Reads the plugin's page `/state`. A page that is cut, not of our protocol, or holds a number that
no counter can have is refused as a whole: part of a page would read as counters gone back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.tuning.page import (
    EDGES,
    Counters,
    Counts,
    Page,
    Phase,
    Position,
    Prompts,
    Proposed,
    RowKey,
    TrialLeft,
)

PROTOCOL = 1

MOST_BYTES = 256 * 1024
"""A page is 2 to 4 KiB; all cells at 16 lengths are below this."""

KEY_COLUMNS = ("k", "cell", "phase")
SUMS = tuple(name for name in Counts._fields if name != "requests")


def parse_state(text: str | bytes) -> Page:
    """The page, or PageUnreadable."""
    if len(text) > MOST_BYTES:
        raise PageUnreadable(f"page of {len(text)} bytes: more than {MOST_BYTES}")
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PageUnreadable(f"page is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise PageUnreadable("page is no JSON object")
    return read_state(body)


def read_state(body: Mapping[str, Any]) -> Page:
    """The page from the values of `/state`, or PageUnreadable."""
    if body.get("protocol") != PROTOCOL:
        raise PageUnreadable(f"protocol {body.get('protocol')!r}: this operator reads {PROTOCOL}")
    if body.get("edges") != list(EDGES):
        raise PageUnreadable("edges are not those of protocol 1")
    return Page(
        plugin=_field(body, "plugin", str),
        vllm=_field(body, "vllm", str),
        method=_field(body, "method", str),
        capacity=int(_number(body.get("capacity"), "capacity")),
        tunable=_field(body, "tunable", bool),
        reason=_field(body, "reason", str),
        hash_read=_text_or_none(body, "hash_read"),
        hash_in_force=_text_or_none(body, "hash_in_force"),
        error=_field(body, "error", str),
        lease=_lease(body.get("lease")),
        running=int(_number(body.get("running"), "running")),
        waiting=int(_number(body.get("waiting"), "waiting")),
        idle_seconds=_number(body.get("idle_seconds"), "idle_seconds"),
        trials=tuple(_trial(entry) for entry in _field(body, "trials", list)),
        counters=Counters(
            pid=int(_number(body.get("pid"), "pid")),
            started=_number(body.get("started"), "started"),
            rows=_rows(_field(body, "columns", list), _field(body, "rows", list)),
            positions=_positions(_field(body, "positions", list)),
            prompts=_prompts(body.get("prompts")),
        ),
        measured=_field({"measured": True, **body}, "measured", bool),
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


Kind = TypeVar("Kind")


def _field(body: Mapping[str, Any], name: str, kind: type[Kind]) -> Kind:
    value = body.get(name)
    if not isinstance(value, kind):
        raise PageUnreadable(f"{name}: expected {kind.__name__}, got {value!r:.40}")
    return value


def _text_or_none(body: Mapping[str, Any], name: str) -> str | None:
    return None if body.get(name) is None else _field(body, name, str)


def _number(value: object, where: str) -> float:
    """A finite number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PageUnreadable(f"{where}: expected a number, got {value!r:.40}")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite or value < 0:
        raise PageUnreadable(f"{where}: no counter can be {value!r:.40}")
    return value


def _numbers(values: object, count: int, where: str) -> Sequence[float]:
    if not isinstance(values, list) or len(values) != count:
        raise PageUnreadable(f"{where}: expected {count} numbers, got {values!r:.40}")
    return [_number(value, where) for value in values]


def _lease(value: object) -> tuple[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise PageUnreadable(f"lease: expected [uid, n], got {value!r:.40}")
    return str(value[0]), int(_number(value[1], "lease"))


def _prompts(value: object) -> Prompts | None:
    """None from a plugin that does not count them."""
    return None if value is None else Prompts(*_numbers(value, 2, "prompts"))


def _trial(entry: object) -> TrialLeft:
    if not isinstance(entry, dict):
        raise PageUnreadable(f"trials: expected objects, got {entry!r:.40}")
    low, high = _numbers(entry.get("batch"), 2, "trials.batch")
    rounds = _number(entry.get("rounds_left"), "trials.rounds_left")
    return TrialLeft(int(low), int(high), int(rounds))


def _rows(columns: Sequence[object], rows: Sequence[object]) -> dict[RowKey, Counts]:
    """Rows by the names of their columns: a newer plugin may have more of them."""
    missing = [name for name in (*KEY_COLUMNS, *SUMS) if name not in columns]
    if missing:
        raise PageUnreadable(f"columns: {', '.join(missing)} missing")
    found: dict[RowKey, Counts] = {}
    for row in rows:
        if not isinstance(row, list) or len(row) != len(columns):
            raise PageUnreadable(f"rows: expected {len(columns)} values, got {row!r:.60}")
        named = {str(name): value for name, value in zip(columns, row, strict=True)}
        key = _row_key(named)
        if key in found:
            raise PageUnreadable(f"rows: {tuple(key)} stands there twice")
        found[key] = _counts(key, named)
    return found


def _row_key(named: Mapping[str, object]) -> RowKey:
    cell = named["cell"]
    if cell is not None and cell not in EDGES:
        raise PageUnreadable(f"rows: {cell!r:.40} is no edge of a batch cell")
    try:
        phase = Phase(str(named["phase"]))
    except ValueError as error:
        raise PageUnreadable(f"rows: {error}") from error
    k = int(_number(named["k"], "rows.k"))
    return RowKey(k, None if cell is None else int(_number(cell, "rows.cell")), phase)


def _counts(key: RowKey, named: Mapping[str, object]) -> Counts:
    """Without a column `requests` every request had a draft, or, at K=0, one token a step."""
    sums = {name: _number(named[name], f"rows.{name}") for name in SUMS}
    alone = sums["drafts"] if key.k else sums["generated"]
    requests = _number(named["requests"], "rows.requests") if "requests" in named else alone
    return Counts(**sums, requests=requests)


def _positions(entries: Sequence[object]) -> dict[Position, Proposed]:
    found: dict[Position, Proposed] = {}
    for entry in entries:
        k, at, drafted, accepted = _numbers(entry, 4, "positions")
        if accepted > drafted:
            raise PageUnreadable(f"positions: {accepted} of {drafted} drafts accepted")
        found[Position(int(k), int(at))] = Proposed(drafted, accepted)
    return found
