"""The past of one model as JSON lines: every window with evidence, and what was decided after it.
Replay and report read it."""

from __future__ import annotations

import json
from dataclasses import asdict

from speculative_operator.tuning.decide import Decision
from speculative_operator.tuning.memory import positions_body, rows_body
from speculative_operator.tuning.window import Window


def entry(key: str, window: Window, decision: Decision, *, now: float) -> str:
    """One line: revision key, Unix time, the window's sums, and the schedule decided after it."""
    body = {
        "t": round(now, 1),
        "key": key,
        "seconds": round(window.seconds, 1),
        "replicas": window.replicas,
        "rows": rows_body(window.rows),
        "positions": positions_body(window.positions),
        "table": decision.table,
        "trials": [asdict(trial) for trial in decision.trials],
        "changes": [asdict(change) for change in decision.changes],
    }
    return json.dumps(body, separators=(",", ":"), allow_nan=False)
