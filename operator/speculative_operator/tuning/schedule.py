"""The schedule file that the plugin rereads: K by batch size, and trials inside that table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PROTOCOL = 1
HASH_DIGITS = 12

Table = tuple[tuple[int, int, int], ...]
"""vLLM's rows (lo, hi, K): batch sizes lo to hi, both in, ascending and without gaps from 1."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Blocks of steps at other K inside the table, for a range of batch sizes.

    A round is one block of `block` steps for each of `arms`, each after so many steps of the table
    that blocks are `share` of all steps. It ends by itself after `rounds`.
    """

    batch: tuple[int, int]
    arms: tuple[int, ...]
    share: float
    block: int
    rounds: int


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """Everything in `schedule.json`.

    `look` numbers the looks at other K: an engine starts the trials again when the text changes,
    so two looks at the same arms must differ in something. Engines ignore it.
    """

    table: Table
    trials: tuple[Trial, ...] = ()
    lease: tuple[str, int] | None = None
    look: int = 0

    def to_json(self) -> str:
        """The file's text: compact, keys in a fixed order, so that equal files are equal bytes."""
        body: dict[str, Any] = {"protocol": PROTOCOL}
        if self.lease is not None:
            body["lease"] = list(self.lease)
        body["table"] = [list(row) for row in self.table]
        if self.trials:
            body["trials"] = [
                {
                    "batch": list(trial.batch),
                    "arms": list(trial.arms),
                    "share": trial.share,
                    "block": trial.block,
                    "rounds": trial.rounds,
                }
                for trial in self.trials
            ]
            body["look"] = self.look
        return json.dumps(body, separators=(",", ":"))

    def plays_as(self, other: ScheduleFile) -> bool:
        """Whether an engine would do the same with either; the lease makes no difference."""
        return (self.table, self.trials) == (other.table, other.trials) and (
            not self.trials or self.look == other.look
        )

    @classmethod
    def read(cls, text: str) -> ScheduleFile | None:
        """The file as it was written by `to_json`; None for anything else."""
        try:
            body = json.loads(text)
            trials = body.get("trials", ())
            lease = body.get("lease")
            return cls(
                table=tuple((int(lo), int(hi), int(k)) for lo, hi, k in body["table"]),
                trials=tuple(_trial(entry) for entry in trials),
                lease=(str(lease[0]), int(lease[1])) if lease else None,
                look=int(body.get("look", 0)),
            )
        except (ValueError, TypeError, KeyError, AttributeError, IndexError):
            return None


def _trial(entry: Mapping[str, Any]) -> Trial:
    low, high = entry["batch"]
    return Trial(
        batch=(int(low), int(high)),
        arms=tuple(int(k) for k in entry["arms"]),
        share=float(entry["share"]),
        block=int(entry["block"]),
        rounds=int(entry["rounds"]),
    )


def schedule_hash(text: str) -> str:
    """What engines report: the first 12 hex digits of SHA-256 of the file's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def length_at(table: Table, batch: int) -> int:
    """K at a batch size; below the first row and above the last that row's, as in vLLM."""
    for _, high, k in table:
        if batch <= high:
            return k
    return table[-1][2]


def joined(rows: Iterable[tuple[int, int, int]]) -> Table:
    """The same table with neighbours of equal K made one row."""
    table: list[tuple[int, int, int]] = []
    for low, high, k in rows:
        if table and table[-1][2] == k:
            table[-1] = (table[-1][0], high, k)
        else:
            table.append((low, high, k))
    return tuple(table)
