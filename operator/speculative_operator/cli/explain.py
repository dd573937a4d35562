"""`explain`: why K is what it is, on one screen."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from speculative_operator.api.status import Alternative, Evidence, ModelStatus, WhyNot
from speculative_operator.cli import words
from speculative_operator.cli.chart import goodput_chart
from speculative_operator.cli.course import points
from speculative_operator.cli.source import Found, NothingKnown, Record
from speculative_operator.tuning.alternatives import alternatives

KNOWN = frozenset(
    {
        WhyNot.SLOWER,
        WhyNot.BELOW_MINIMUM_GAIN,
        WhyNot.NO_SURE_GAIN,
        WhyNot.WAITS_FOR_TRAFFIC,
        WhyNot.ANOTHER_IS_FASTER,
        WhyNot.RECOMMENDED,
        WhyNot.LONGER_STEPS,
        WhyNot.LOSES_TOO_MUCH,
    }
)
"""Reasons that rest on a measurement; where it is none of these batch sizes, it is one of others.
"""

MOST_BUCKETS = 6
MOST_DECISIONS = 5
WIDTH = 80
"""Columns where the terminal's are not known, as in a pipe."""


def show(found: Found, *, now: float, console: Console | None = None) -> None:
    """Prints what status and history tell. Raises NothingKnown for a model that has no status."""
    status = found.status
    if status is None:
        raise NothingKnown(f"{found.title} has no status yet: is the operator running?")
    console = console or terminal()
    _headline(console, found.title, status, now)
    if status.evidence.alternatives:
        title = "Other K at the batch sizes seen most"
        print_under(console, title, _alternatives(status.evidence, now))
    if found.record is not None:
        _past(console, found.record)
    if status.decisions:
        print_under(console, "Last decisions", _decisions(status, now))
    if found.gap:
        console.print(Text(f"\nno history: {found.gap}", style="yellow"))


def terminal() -> Console:
    """Colours and width as the terminal has them; neither in a pipe. Texts hold no markup."""
    console = Console(highlight=False, markup=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=WIDTH)


def a_table() -> Table:
    """A table in the style of all of them."""
    return Table(box=box.SIMPLE_HEAD)


def print_under(console: Console, title: str, table: Table) -> None:
    """The table under its title, which may be wider."""
    console.print(Text(title, style="bold"))
    console.print(table)


def _headline(console: Console, title: str, status: ModelStatus, now: float) -> None:
    evidence = status.evidence
    mode = status.mode
    plays = f"{mode.value}, K={status.proposal_length}" if mode else "nothing runs"
    console.print(Text.assemble((title, "bold"), f"  {plays}"))
    for line in words.conditions(status):
        console.print(Text(line))
    if evidence.goodput is not None:
        speedup = f", {evidence.speedup:.2f} times K=0" if evidence.speedup is not None else ""
        age = words.ago(evidence.measured_at, now)
        console.print(f"Goodput: {evidence.goodput:.1f} tokens/s a replica{speedup}; seen {age}.")
    look = evidence.next_look
    if look is not None:
        soon = words.unix(look.time) - now if look.time else 0.0
        about = f", in about {words.duration(soon)}" if soon > 0 else ""
        console.print(f"Next look at other K: {look.message}{about}.")
    if evidence.other_variant is not None:
        console.print(words.other_variant(evidence.other_variant))


def _alternatives(evidence: Evidence, now: float) -> Table:
    table = a_table()
    table.add_column("K", justify="right")
    table.add_column("tokens/s", justify="right")
    table.add_column("timed")
    table.add_column("why not")
    for other in evidence.alternatives:
        timed = words.ago(other.measured_at, now)
        if other.measured_at is None and other.reason in KNOWN:
            timed = "elsewhere"
        goodput = _expected(other, evidence.goodput)
        table.add_row(str(other.proposal_length), goodput, timed, other.message)
    return table


def _expected(other: Alternative, now: float | None) -> str:
    """Goodput with its standard error, which tells a measurement from a guess."""
    if other.goodput is None:
        return "-"
    if now is None or other.error_percent is None:
        return f"{other.goodput:.0f}"
    return f"{other.goodput:.0f} ± {now * other.error_percent / 100:.0f}"


def _past(console: Console, record: Record) -> None:
    if not record.state.away:
        title = "Change of goodput in % by batch size, ± its error"
        print_under(console, title, _by_batch(record))
    found = points(record.past)
    if len(found) > 1:
        first, last = found[0].at, found[-1].at
        console.print(Text(f"Goodput over {words.duration(last - first)}", style="bold"))
        console.out(goodput_chart(found, width=min(console.width, 120)), highlight=False)


def _by_batch(record: Record) -> Table:
    """K down, batch sizes across: expected change of goodput against what is in force there."""
    state, policy = record.state, record.policy
    busiest = sorted(state.buckets, key=lambda name: -state.buckets[name].traffic)[:MOST_BUCKETS]
    table = a_table()
    table.add_column("K", justify="right")
    cells: dict[int, list[str]] = {k: [] for k in (0, *policy.choices)}
    for name in sorted(busiest):
        table.add_column(words.batches(name, policy.max_num_seqs), justify="right")
        changes = {state.buckets[name].length: "in force"}
        for other in alternatives(state, policy, name):
            known = other.gain is not None and other.error is not None
            changes[other.length] = (
                f"{100 * (other.gain or 0):+.0f} ± {100 * (other.error or 0):.0f}" if known else "-"
            )
        for k, row in cells.items():
            row.append(changes.get(k, "-"))
    for k, row in cells.items():
        table.add_row(str(k), *row)
    return table


def _decisions(status: ModelStatus, now: float) -> Table:
    table = a_table()
    table.add_column("when", no_wrap=True)
    table.add_column("what")
    for decision in status.decisions[:MOST_DECISIONS]:
        outcome = f"\n{decision.outcome}" if decision.outcome else ""
        table.add_row(words.ago(decision.time, now), decision.message + outcome)
    return table
