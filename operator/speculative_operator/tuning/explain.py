"""Evidence in numbers and reasons in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.buckets import batch_range, bucket_of
from speculative_operator.tuning.page import Counts, Phase
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rows import window_row
from speculative_operator.tuning.rule import Option, options
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import State
from speculative_operator.tuning.verdict import Change, Evidence
from speculative_operator.tuning.window import Window

OUTCOME_AFTER = 2
"""Windows after a change from which its outcome is read."""


def evidence(window: Window, speedup: float | None, *, now: float) -> Evidence:
    """What one window measured, told of the K that made most of its steps."""
    main = main_length(window)
    total = window.total(main)
    row = window_row(window, main)
    return Evidence(
        measured_at=now,
        drafts=round(window.drafts),
        acceptance=total.accepted / total.draft_tokens if total.draft_tokens else None,
        acceptance_length=1.0 + row.brought if row else None,
        positions=row.positions if row else (),
        goodput=fleet_goodput(window),
        speedup=speedup,
        seconds=window.seconds,
    )


def main_length(window: Window) -> int:
    """The K with most request-steps."""
    lengths = sorted({key.k for key in window.rows})
    return max(lengths, key=lambda k: window.total(k).requests, default=0)


def fleet_goodput(window: Window) -> float | None:
    """Generated tokens a second and replica, while decoding.

    Engines without the plugin do not time their steps; there it is tokens by the clock.
    """
    decoding = Counts()
    everything = 0.0
    for key, counts in window.rows.items():
        everything += counts.generated
        if key.phase is Phase.DECODE:
            decoding = decoding.plus(counts)
    if decoding.seconds:
        return decoding.generated / decoding.seconds
    by_the_clock = window.seconds * window.replicas
    return everything / by_the_clock if everything and by_the_clock else None


def goodput(window: Window, low: int, high: int, k: int) -> float | None:
    """Tokens a second and replica of decode-only steps at one K and these batch sizes."""
    total = Counts()
    for key, counts in window.rows.items():
        first, last = batch_range(bucket_of(key.cell))
        if key.k == k and key.phase is Phase.DECODE and low <= last and first <= high:
            total = total.plus(counts)
    return total.generated / total.seconds if total.seconds else None


def speedup(state: State, lengths: Mapping[int, Lengths]) -> float | None:
    """Goodput over that of K=0, at the batch sizes seen most; None where K=0 was not measured."""
    if state.busiest is None:
        return None
    bucket = state.buckets[state.busiest]
    length, cost = lengths[state.busiest].get(bucket.length), bucket.cost.of(bucket.length)
    if length is None or not bucket.cost.measured(bucket.length, 0):
        return None
    return math.exp(length.mean - cost.mean)


def with_outcomes(changes: Iterable[Change], window: Window, windows: int) -> tuple[Change, ...]:
    """Decisions with what happened to goodput afterwards, once two more windows were seen."""
    return tuple(_with_outcome(change, window, windows) for change in changes)


def _with_outcome(change: Change, window: Window, windows: int) -> Change:
    if change.outcome or change.advised or windows < change.window + OUTCOME_AFTER:
        return change
    after = goodput(window, change.low, change.high, change.after)
    if after is None or not change.goodput:
        return change
    moved = after / change.goodput - 1.0
    outcome = f"goodput {change.goodput:.1f} -> {after:.1f} tokens/s ({moved:+.0%})"
    return replace(change, outcome=outcome)


def batches(low: int, high: int) -> str:
    """The batch sizes of a message."""
    return f"batch {low}" if low == high else f"batch {low}-{high}"


def change_message(low: int, high: int, before: int, option: Option, policy: Policy) -> str:
    """What evidence says for another K."""
    gain, error = math.expm1(option.plain), option.error
    steps = f", steps {math.expm1(option.step):+.0%}" if policy.throughput_loss else ""
    return (
        f"{batches(low, high)}: K {before} -> {option.k}, measured goodput {gain:+.0%} "
        f"(standard error {error:.0%}){steps}"
    )


def given_up_message(low: int, high: int, before: int, after: int) -> str:
    """What a faulty draft asks for."""
    return (
        f"{batches(low, high)}: K {before} -> {after}, the draft is faulty: what it proposes only "
        "costs"
    )


def bounds_message(low: int, high: int, before: int, after: int) -> str:
    """What the user's bounds ask for."""
    return f"{batches(low, high)}: K {before} -> {after}, the nearest within spec.tuning.bounds"


def advice_in_words(state: State, policy: Policy) -> str:
    """What mode Recommend would play, and what is expected of it by now; "" if it would play
    nothing else."""
    lengths = state.lengths(policy)
    advice = []
    for name, bucket in sorted(state.buckets.items()):
        found = options(bucket.length, bucket.cost, lengths[name], policy)
        option = next((option for option in found if option.k == bucket.advised), None)
        if option is not None:
            words = f"{_change_in_words(option.plain)} goodput"
            if policy.throughput_loss:
                words += f", {_change_in_words(option.step)} step time"
            low, high = batch_range(name)
            where = batches(low, min(high, policy.max_num_seqs))
            advice.append(f"K={bucket.advised} at {where} ({words})")
    return ", ".join(advice)


def _change_in_words(change: float) -> str:
    """A logarithm as a share in steps of 5%, so that the text does not change with every window."""
    steps = round(20 * math.expm1(change))
    if steps:
        return f"about {steps / 20:+.0%}"
    return f"less than 5% {'more' if change > 0 else 'less'}"


def length_in_words(state: State) -> str:
    """K in force, as a condition's message tells it."""
    lengths = sorted({k for _, _, k in state.table})
    if len(lengths) == 1:
        return f"K={lengths[0]} at every batch size"
    busiest = state.busiest
    main = length_at(state.table, busiest) if busiest is not None else lengths[0]
    return f"K={main} at most traffic, {lengths[0]} to {lengths[-1]} by batch size"
