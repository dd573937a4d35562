"""`replay`: what the policy would have decided on the recorded windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from speculative_operator.cli import words
from speculative_operator.cli.explain import a_table, print_under, terminal
from speculative_operator.cli.options import Settings
from speculative_operator.cli.source import Found
from speculative_operator.errors import OperatorError
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.replay import Step, replayed
from speculative_operator.tuning.rule import options
from speculative_operator.tuning.schedule import Table as Schedule
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.variant import Variant


def show_replay(found: Found, settings: Settings, console: Console | None = None) -> None:
    """Prints the two courses side by side. Raises NothingKnown without a history, and NotPossible
    for bounds that the model cannot have."""
    check_bounds(found.recorded().policy, settings)
    steps = list(replayed(found.recorded().past, changed_by(settings)))
    console = console or terminal()
    windows = sum(step.entry.window is not None for step in steps)
    console.print(f"{found.title}: {windows} recorded windows, {described(settings)}")
    print_under(console, "K by batch size", courses(steps))
    console.print(summary(steps))


class NotPossible(OperatorError):
    """A setting that no spec of this model could have; the message says which it could."""


def check_bounds(policy: Policy, settings: Settings) -> None:
    """Whether bounds could stand in the spec of a model with this policy. Raises NotPossible."""
    low = policy.low if settings.low is None else settings.low
    high = policy.high if settings.high is None else settings.high
    most = max((0, *policy.choices))
    for flag, value in (("--min", settings.low), ("--max", settings.high)):
        if value is not None and not 0 <= value <= most:
            raise NotPossible(f"{flag} {value}: the engines are started for K from 0 to {most}")
    if low > high:
        theirs = "--max" if settings.high is None else "--min"
        other = high if settings.high is None else low
        raise NotPossible(
            f"--min {low} is above --max {high}"
            if None not in (settings.low, settings.high)
            else f"no K is from {low} to {high}: give {theirs}, too, which was {other}"
        )


def changed_by(settings: Settings) -> Callable[[Policy], Policy]:
    """The recorded policy with these settings instead of its own."""
    given = {
        name: value
        for name in ("minimum_gain", "throughput_loss", "trial_share", "low", "high")
        if (value := getattr(settings, name)) is not None
    }
    return lambda policy: replace(policy, **given)


def described(settings: Settings) -> str:
    """The settings in words."""
    loss = settings.throughput_loss
    told = [
        text
        for value, text in (
            (settings.minimum_gain, f"minimum gain {100 * (settings.minimum_gain or 0):g}%"),
            (loss, f"objective {words.objective(loss or 0.0)}"),
            (settings.trial_share, f"trial share {100 * (settings.trial_share or 0):g}%"),
            (settings.low, f"K at least {settings.low}"),
            (settings.high, f"K at most {settings.high}"),
        )
        if value is not None
    ]
    return " and ".join(told) if told else "settings as they were"


Course = tuple[Schedule, Variant]
"""What engines are told: the schedule is of no use to those without speculation."""


def recorded(step: Step) -> Course:
    """What was decided."""
    return step.entry.table, step.entry.variant


def decided(step: Step) -> Course:
    """What would have been."""
    return step.decision.table, step.decision.variant


def in_words(course: Course) -> str:
    """K by batch size, where engines play any."""
    table, variant = course
    return words.lengths(table) if variant is Variant.SPECULATIVE else "without"


@dataclass(frozen=True, slots=True)
class Row:
    """From when on which courses: what was played, and what would have been."""

    at: float
    played: Course
    replayed: Course


def rows(steps: Iterable[Step]) -> list[Row]:
    """A row wherever one of the two changes."""
    found: list[Row] = []
    for step in steps:
        row = Row(step.entry.at, recorded(step), decided(step))
        if not found or (found[-1].played, found[-1].replayed) != (row.played, row.replayed):
            found.append(row)
    return found


def courses(steps: Sequence[Step]) -> Table:
    """Both courses as a table."""
    table = a_table()
    for name in ("from (UTC)", "recorded", "replay"):
        table.add_column(name)
    for row in rows(steps):
        at = datetime.fromtimestamp(row.at, UTC).strftime("%m-%d %H:%M:%S")
        same = "the same" if row.played == row.replayed else in_words(row.replayed)
        table.add_row(at, in_words(row.played), same)
    return table


def summary(steps: Sequence[Step]) -> str:
    """Switches of both, how often they differ, and what that was worth."""
    apart = [step for step in steps if recorded(step) != decided(step)]
    switches = sum(not c.advised for step in steps for c in step.entry.changes)
    others = sum(not c.advised for step in steps for c in step.decision.changes)
    lines = [f"{switches} switches recorded, {others} in replay."]
    if not apart:
        lines.append("It would have played the same.")
        return "\n".join(lines)
    share = len(apart) / len(steps)
    lines.append(f"Another course after {len(apart)} of {len(steps)} decisions ({share:.0%}).")
    gain = expected_gain(apart)
    if gain is not None:
        lines.append(
            f"There its K is expected to bring {gain:+.1%} of goodput at the batch sizes seen "
            "most, by the evidence of that time."
        )
    lines.append(
        "The windows stay those of what was played, so later differences are less sure than the "
        "first."
    )
    return "\n".join(lines)


def expected_gain(apart: Iterable[Step]) -> float | None:
    """Mean change of goodput by the replay's K against the recorded one, as a share; None where
    they differ only at batch sizes that are not the busiest, nothing is known of the K, or one of
    the two is without speculation."""
    gains = []
    for step in apart:
        state, policy = step.decision.state, step.entry.policy
        if state.busiest is None or state.away or step.entry.variant is not Variant.SPECULATIVE:
            continue
        bucket = state.buckets[state.busiest]
        played = length_at(step.entry.table, state.busiest)
        wanted = length_at(step.decision.table, state.busiest)
        lengths = state.lengths(policy)[state.busiest]
        anything = replace(policy, low=0, high=max(policy.arms[-1], played, wanted))
        known = {option.k: option for option in options(played, bucket.cost, lengths, anything)}
        if wanted in known:
            gains.append(known[wanted].plain)
    return math.expm1(sum(gains) / len(gains)) if gains else None
