"""Numbers and times as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from speculative_operator.api.conditions import ConditionType
from speculative_operator.api.status import ModelStatus, OtherVariant
from speculative_operator.tuning.buckets import batch_range
from speculative_operator.tuning.schedule import Table

TOLD = (ConditionType.SPECULATION_HEALTHY, ConditionType.TUNED)
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """In the largest unit of which there is at least one and a half: `45 s`, `89 s`, `2 min`."""
    size, unit = next((u for u in UNITS if seconds >= 1.5 * u[0]), UNITS[-1])
    return f"{round(max(seconds, 0.0) / size)} {unit}"


def unix(rfc3339: str) -> float:
    """The opposite of `controller.seen.times`."""
    return datetime.fromisoformat(rfc3339).timestamp()


def ago(rfc3339: str | None, now: float) -> str:
    """How long ago a time of the status was; `never` where there is none."""
    return "never" if rfc3339 is None else f"{duration(now - unix(rfc3339))} ago"


def batches(bucket: int, most: int) -> str:
    """The batch sizes of a bucket, as far as there are any."""
    low, high = batch_range(bucket)
    return span(low, min(high, most))


def span(low: int, high: int) -> str:
    """Batch sizes from low to high, both in."""
    return str(high) if low == high else f"{low}-{high}"


def lengths(table: Table) -> str:
    """A schedule in one line: `1-4: 3, 5-64: 2`, or `3` where it is the same everywhere."""
    if len(table) == 1:
        return str(table[0][2])
    return ", ".join(f"{span(low, high)}: {k}" for low, high, k in table)


def objective(throughput_loss: float) -> str:
    """What is tuned for, by the share of throughput that may be given up for shorter steps."""
    if not throughput_loss:
        return "Throughput"
    return f"Latency, loss at most {100 * throughput_loss:g}%"


def conditions(status: ModelStatus) -> Iterator[str]:
    """What the status says of the draft and of tuning."""
    for condition in status.conditions:
        if condition.type in TOLD:
            yield f"{condition.type.value}: {condition.reason}. {condition.message}"


def other_variant(other: OtherVariant) -> str:
    """What engines of the other variant would bring, and what stands in the way."""
    engines = "with" if other.speculative else "without"
    gain = "" if other.gain_percent is None else f"{other.gain_percent:+.0f}% goodput; "
    price = "" if other.price_seconds is None else f" of the {other.price_seconds} s it costs"
    owed = f"missed {other.owed_seconds} s{price}"
    return f"Engines restarted {engines} speculation: {gain}{owed}; {other.message}."
