"""What the plugin reports: `/state`, compact JSON, and `/metrics`, the same as Prometheus text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from live_speculation import PROTOCOL, __version__
from live_speculation.ledger import COLUMNS, EDGES
from live_speculation.live import LiveSpeculation

_STEP_SUMS = {
    "steps": ("speculation_steps_total", "Timed engine steps."),
    "clipped": ("speculation_steps_clipped_total", "Timed steps clipped at 4 times the median."),
    "seconds": ("speculation_step_seconds_total", "Seconds of the timed steps, clipped."),
    "log_us": (
        "speculation_step_log_microseconds_total",
        "Sum of the natural logarithm of the clipped step times in microseconds.",
    ),
    "log_us_sq": (
        "speculation_step_log_microseconds_squared_total",
        "Sum of the squares of those logarithms.",
    ),
    "drafts": ("speculation_drafts_total", "Requests with a draft, over all steps."),
    "draft_tokens": ("speculation_draft_tokens_total", "Draft tokens verified, over all steps."),
    "accepted": ("speculation_accepted_tokens_total", "Draft tokens accepted, over all steps."),
    "requests": ("speculation_request_steps_total", "Requests of a step, over all steps."),
    "generated": ("speculation_generated_tokens_total", "Tokens given out by the timed steps."),
}
_POSITION_SUMS = (
    ("speculation_position_drafted_total", "Drafts that reached the position (from 0)."),
    ("speculation_position_accepted_total", "Drafts accepted up to the position (from 0)."),
)


def state(live: LiveSpeculation) -> dict[str, Any]:
    """The page `/state`: see the module `ledger` for what each column counts.

    `hash_read` is the last valid file's, `hash_in_force` that of the schedule which picks K.
    """
    engine, read = live.engine, live.read
    running, waiting = live.load()
    books = live.ledger.copy()
    return {
        "protocol": PROTOCOL,
        "plugin": __version__,
        "vllm": engine.vllm,
        "runner": engine.runner,
        "pid": live.pid,
        "started": round(live.started, 3),
        "method": engine.method,
        "capacity": engine.capacity,
        "tunable": engine.tunable,
        "reason": engine.reason,
        "measured": engine.measured,
        "hash_read": read.digest if read else None,
        "hash_in_force": live.digest_in_force,
        "error": live.error or live.fault,
        "lease": list(read.lease) if read and read.lease else None,
        "running": running,
        "waiting": waiting,
        "idle_seconds": round(live.idle_seconds(), 3),
        "prompts": [live.prompts.seen, live.prompts.repeated],
        "trials": [{"batch": list(batch), "rounds_left": rounds} for batch, rounds in live.trials],
        "edges": list(EDGES),
        "columns": list(COLUMNS),
        "rows": [
            [round(value, 6) if isinstance(value, float) else value for value in row]
            for row in books.rows
        ],
        "positions": books.positions,
    }


def state_json(live: LiveSpeculation) -> str:
    """`state` as the compact text that goes over the wire."""
    return json.dumps(state(live), separators=(",", ":"), allow_nan=False)


def metrics(live: LiveSpeculation) -> str:
    """The page `/metrics`, Prometheus text format 0.0.4."""
    page = state(live)
    lines: list[str] = []
    labelled = [
        (f'{{k="{row[0]}",batch="{"+Inf" if row[1] is None else row[1]}",phase="{row[2]}"}}', row)
        for row in page["rows"]
    ]
    for index, column in enumerate(COLUMNS):
        if column in _STEP_SUMS:
            samples = ((labels, row[index]) for labels, row in labelled)
            lines += _family(*_STEP_SUMS[column], "counter", samples)
    for offset, (name, text) in enumerate(_POSITION_SUMS):
        samples = (
            (f'{{k="{row[0]}",position="{row[1]}"}}', row[2 + offset]) for row in page["positions"]
        )
        lines += _family(name, text, "counter", samples)
    for name, text, value in (
        ("speculation_prompts_total", "Requests with a prompt.", live.prompts.seen),
        (
            "speculation_prompts_repeated_total",
            "Prompts that equal one of the last few.",
            live.prompts.repeated,
        ),
    ):
        lines += _family(name, text, "counter", [("", value)])
    gauges = (
        ("speculation_requests_running", "Requests running.", page["running"]),
        ("speculation_requests_waiting", "Requests waiting.", page["waiting"]),
        ("speculation_idle_seconds", "Seconds since the last step.", page["idle_seconds"]),
        ("speculation_start_time_seconds", "Start, in Unix time.", page["started"]),
    )
    for name, text, value in gauges:
        lines += _family(name, text, "gauge", [("", value)])
    left = (
        (f'{{low="{trial["batch"][0]}",high="{trial["batch"][1]}"}}', trial["rounds_left"])
        for trial in page["trials"]
    )
    lines += _family("speculation_trial_rounds_left", "Rounds to play, by batch.", "gauge", left)
    info = {
        key: page[key] for key in ("protocol", "plugin", "vllm", "runner", "method", "capacity",
                                   "tunable", "measured", "reason", "hash_read", "hash_in_force",
                                   "error")
    }  # fmt: skip
    labels = ",".join(f'{key}="{_label(value)}"' for key, value in info.items())
    lines += _family("speculation_info", "What serves here.", "gauge", [(f"{{{labels}}}", 1)])
    return "\n".join(lines) + "\n"


def _family(name: str, text: str, kind: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    head = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    return head + [f"{name}{labels} {value}" for labels, value in samples]


def _label(value: object) -> str:
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
