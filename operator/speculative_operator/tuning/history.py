"""The past of one model as JSON lines: what was decided on, and what came of it.

An entry holds all that one call of `decide` was given, and its result, so that `tuning.replay` can
ask again, with other settings too. A call without a window is only told of if it changed something.
Some entries also hold the state that they began with: the first one after each start, and every
CHECKPOINT-th after that, since the oldest entries are dropped.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pydantic import TypeAdapter

from speculative_operator.tuning.decide import Decision
from speculative_operator.tuning.memory import (
    MOST_ENTRIES,
    positions_body,
    read_positions,
    read_rows,
    rows_body,
)
from speculative_operator.tuning.occasion import SPECULATIVE_ONLY, Occasion, Running
from speculative_operator.tuning.page import Counts, Prompts, Proposed
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import Table, Trial
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Variant
from speculative_operator.tuning.verdict import Change
from speculative_operator.tuning.window import Window

CHECKPOINT = 100
"""Entries from one that holds its state to the next."""

BLOCK = 25
"""Entries that are packed together; MOST_ENTRIES is a multiple of it."""

QUICK = 1
"""Zlib's level: a new operator packs the past of all models as it starts."""

DIGITS = 9
"""Significant digits of a window's sums of times. A spread of 1% is the difference of squares that
are alike in their first six."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision. `key` is the revision's, `window` None for a command of the user's and where
    no engine speculates, `before` the state where it is held."""

    key: str
    policy: Policy
    occasion: Occasion
    window: Window | None
    table: Table
    trials: tuple[Trial, ...]
    changes: tuple[Change, ...]
    variant: Variant = Variant.SPECULATIVE
    sensor: bool = False
    before: State | None = None

    @property
    def at(self) -> float:
        """Unix time."""
        return self.occasion.now

    def plays_as(self, decision: Decision) -> bool:
        """Whether another decision would let the engines do the same."""
        return (self.table, self.trials, self.variant, self.sensor) == (
            decision.table,
            decision.trials,
            decision.variant,
            decision.sensor,
        )


@dataclass(frozen=True, slots=True)
class History:
    """The last entries. Most are held packed, BLOCK in one, since an operator has those of all
    models: `late` are the lines since. `since` counts those after the last one that holds its
    state."""

    packed: tuple[bytes, ...] = ()
    late: tuple[str, ...] = ()
    since: int | None = None

    @classmethod
    def of(cls, lines: Iterable[str]) -> History:
        """What was saved, as a new operator goes on from it."""
        history = cls()
        for line in lines:
            history = history._with(line)
        return history

    @property
    def lines(self) -> tuple[str, ...]:
        """Oldest first."""
        early = (zlib.decompress(block).decode().split("\n") for block in self.packed)
        return (*chain.from_iterable(early), *self.late)[-MOST_ENTRIES:]

    def after(self, entry: Entry) -> History:
        """With one more entry, which comes with its state; that is kept where it is due."""
        due = self.since is None or self.since + 1 >= CHECKPOINT
        line = to_line(entry if due else replace(entry, before=None))
        since = 0 if due else (self.since or 0) + 1
        return replace(self._with(line), since=since)

    def _with(self, line: str) -> History:
        late = (*self.late, line)
        if len(late) < BLOCK:
            return replace(self, late=late)
        block = zlib.compress("\n".join(late).encode(), QUICK)
        return replace(self, packed=(*self.packed, block)[-(MOST_ENTRIES // BLOCK) :], late=())


def kept(window: Window) -> Window:
    """The window as an entry keeps it; what is decided on it can be decided again, bit by bit."""
    return replace(
        window,
        seconds=_short(window.seconds),
        rows={key: Counts(*map(_short, counts)) for key, counts in window.rows.items()},
        positions={at: Proposed(*map(_short, sums)) for at, sums in window.positions.items()},
    )


def to_line(entry: Entry) -> str:
    """One line of compact JSON."""
    body: dict[str, Any] = {
        "t": entry.at,
        "key": entry.key,
        "policy": _POLICY.dump_python(entry.policy, mode="json"),
        "table": entry.table,
    }
    if entry.occasion.asked is not None:
        body["asked"] = entry.occasion.asked
    if entry.occasion.running != SPECULATIVE_ONLY:
        body["running"] = _running_body(entry.occasion.running)
    if entry.variant is not Variant.SPECULATIVE:
        body["variant"] = entry.variant.value
    if entry.sensor:
        body["sensor"] = True
    if entry.window is not None:
        body["window"] = _window_body(entry.window)
    if entry.trials:
        body["trials"] = _TRIALS.dump_python(entry.trials, mode="json")
    if entry.changes:
        body["changes"] = _CHANGES.dump_python(entry.changes, mode="json")
    if entry.before is not None:
        body["before"] = _STATE.dump_python(entry.before, mode="json")
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries that can be read; those of another version are passed over."""
    for line in lines:
        try:
            yield _entry(json.loads(line))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue


_POLICY = TypeAdapter(Policy)
_TRIALS = TypeAdapter(tuple[Trial, ...])
_CHANGES = TypeAdapter(tuple[Change, ...])
_STATE = TypeAdapter(State)


def _entry(body: Mapping[str, Any]) -> Entry:
    window, before = body.get("window"), body.get("before")
    return Entry(
        key=str(body["key"]),
        policy=_POLICY.validate_python(body["policy"]),
        occasion=Occasion(float(body["t"]), body.get("asked"), _running(body.get("running"))),
        window=_window(window) if window is not None else None,
        table=tuple((int(low), int(high), int(k)) for low, high, k in body["table"]),
        trials=_TRIALS.validate_python(body.get("trials", ())),
        changes=_CHANGES.validate_python(body.get("changes", ())),
        variant=Variant(body.get("variant", Variant.SPECULATIVE)),
        sensor=bool(body.get("sensor", False)),
        before=_STATE.validate_python(before) if before is not None else None,
    )


def _running_body(running: Running) -> dict[str, Any]:
    body: dict[str, Any] = {
        "speculative": running.speculative,
        "autoregressive": running.autoregressive,
        "pods": running.pods,
    }
    if running.startup is not None:
        body["startup"] = running.startup
    if running.window is not None:
        body["window"] = _window_body(running.window)
    return body


def _running(body: Mapping[str, Any] | None) -> Running:
    if body is None:
        return SPECULATIVE_ONLY
    window = body.get("window")
    return Running(
        speculative=int(body["speculative"]),
        autoregressive=int(body["autoregressive"]),
        pods=int(body.get("pods", 1)),
        startup=body.get("startup"),
        window=_window(window) if window is not None else None,
    )


def _window_body(window: Window) -> dict[str, Any]:
    body: dict[str, Any] = {
        "seconds": window.seconds,
        "rows": rows_body(window.rows),
        "positions": positions_body(window.positions),
    }
    if window.replicas != 1:
        body["replicas"] = window.replicas
    if window.trials_over:
        body["over"] = True
    if window.prompts is not None:
        body["prompts"] = window.prompts
    return body


def _window(body: Mapping[str, Any]) -> Window:
    prompts = body.get("prompts")
    return Window(
        seconds=float(body["seconds"]),
        replicas=int(body.get("replicas", 1)),
        rows=read_rows(body["rows"]),
        positions=read_positions(body["positions"]),
        trials_over=bool(body.get("over", False)),
        prompts=Prompts(*prompts) if prompts is not None else None,
    )


def _short(number: float) -> float:
    """With so many digits as are kept; whole numbers, which counts are, as such."""
    return int(number) if number == int(number) else float(f"{number:.{DIGITS}g}")
