"""`report`: one HTML file with plots and tables, which needs nothing else to open."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from speculative_operator.cli import course, figures, words
from speculative_operator.cli.source import Found, NothingKnown, Record
from speculative_operator.errors import in_a_line
from speculative_operator.tuning.alternatives import Alternative, alternatives
from speculative_operator.tuning.policy import Policy

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22262d; background: #fff;
  max-width: 1040px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
p { margin: .3rem 0; } .note, caption { color: #666d78; font-size: .87rem; text-align: left; }
.halves { display: flex; flex-wrap: wrap; gap: 0 1rem; } .halves section { flex: 1 1 480px; }
.scroll { overflow-x: auto; } .scroll svg { min-width: 640px; }
svg { width: 100%; height: auto; } svg text { font-family: system-ui, sans-serif !important; }
table { border-collapse: collapse; font-size: .87rem; }
th { text-align: left; font-weight: 600; } td, th { padding: .2rem .9rem .2rem 0;
  border-bottom: 1px solid #eceef1; vertical-align: top; }
td:first-child { white-space: nowrap; } td:nth-child(n+3) { min-width: 8rem; }
td.now { font-weight: 600; color: #2b4fb3; }
"""

OVER_TIME = (
    "Every window: generated tokens a second and replica, while decoding. Below, K at the batch "
    "size that made most of it. Red lines are decisions, dotted ones only advice. Times are UTC."
)


def write_report(found: Found, path: Path, *, now: float) -> None:
    """Writes the page. Raises NothingKnown without a history, or where it cannot be written."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    page = report(found, now=now)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise NothingKnown(f"{path} cannot be written: {in_a_line(error)}") from error


def report(found: Found, *, now: float) -> str:
    """The page's text."""
    record = found.recorded()
    title = escape(f"Speculation of {found.title}")
    return "\n".join(
        (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>",
            *_summary(record, now),
            *(f"<p>{escape(line)}</p>" for line in _verdicts(found)),
            "<h2>Goodput over time</h2>",
            _scrolled(figures.goodput_over_time(record)),
            _note(OVER_TIME),
            '<div class="halves">',
            _expected_goodput(record),
            _section(
                "Step cost by K and batch size",
                figures.step_cost(record),
                "Measured K only. Time of a step that decodes, over one without drafts.",
            ),
            _section(
                "Acceptance by position",
                figures.acceptance_by_position(record),
                "Of the last 40 windows; bars are two standard errors of the counts.",
            ),
            f"<section><h2>Settings</h2>{_settings(record.policy)}</section>",
            "</div>",
            *_decisions(record),
            *_alternatives(record),
            "</body></html>",
            "",
        )
    )


def _summary(record: Record, now: float) -> Iterable[str]:
    first, last = record.past[0].at, record.past[-1].at
    windows = sum(entry.window is not None for entry in record.past)
    written = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield (
        f'<p class="note">Revision {escape(record.past[-1].key)}, {windows} windows over '
        f"{words.duration(last - first)} until "
        f"{datetime.fromtimestamp(last, UTC):%Y-%m-%d %H:%M UTC}. Written {written}.</p>"
    )
    yield f"<p>K by batch size: {escape(words.lengths(record.past[-1].table))}</p>"


def _verdicts(found: Found) -> Iterable[str]:
    """What the status says, where there is one: a saved ConfigMap has none."""
    if found.status is None:
        return
    yield from words.conditions(found.status)
    other = found.status.evidence.other_variant
    if other is not None:
        yield words.other_variant(other)


def _expected_goodput(record: Record) -> str:
    if record.state.away:
        return ""
    return _section(
        "Expected goodput by K",
        figures.expected_goodput(record),
        "Measured K only. 1 is the K in force at that batch size; bars are one standard error.",
    )


def _section(title: str, svg: str, note: str) -> str:
    return f"<section><h2>{title}</h2>{svg}{_note(note)}</section>"


def _note(text: str) -> str:
    return f'<p class="note">{text}</p>'


def _settings(policy: Policy) -> str:
    window = policy.window
    return _table(
        ("setting", "value"),
        (
            ("mode", policy.mode.value),
            ("method", policy.method),
            ("choices of K", ", ".join(map(str, (0, *policy.choices)))),
            ("K allowed", f"{policy.shortest} to {policy.arms[-1]}"),
            ("objective", words.objective(policy.throughput_loss)),
            ("minimum gain", f"{policy.minimum_gain:.0%}"),
            ("trial share", f"{policy.trial_share:.0%}"),
            ("window", f"{window.drafts} drafts"),
            ("its length", f"{window.least_seconds:g} to {window.most_seconds:g} s"),
        ),
    )


def _alternatives(record: Record) -> Iterable[str]:
    """K down, batch sizes across; nothing where no engine plays a K."""
    if record.state.away:
        return
    state, policy = record.state, record.policy
    names = figures.busiest(record)
    cells: dict[int, list[str]] = {k: [f"<th>{k}</th>"] for k in (0, *policy.choices)}
    for name in names:
        cells.setdefault(state.buckets[name].length, []).append('<td class="now">in force</td>')
        for other in alternatives(state, policy, name):
            cells[other.length].append(_alternative(other))
    head = "".join(f"<th>batch {words.batches(name, policy.max_num_seqs)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells.values())
    yield "<h2>Why not another K</h2>"
    yield _scrolled(f"<table><tr><th>K</th>{head}</tr>{body}</table>")
    yield _note(
        "Expected change of goodput against the K in force, with its standard error, and why it is "
        "not in force."
    )


def _alternative(other: Alternative) -> str:
    change = "-"
    if other.gain is not None and other.error is not None:
        change = f"{other.gain:+.1%} ± {other.error:.1%}"
    return (
        f'<td title="{escape(other.message)}">{change}<br>'
        f'<span class="note">{other.reason.value}</span></td>'
    )


def _decisions(record: Record) -> Iterable[str]:
    yield "<h2>Decisions</h2>"
    outcomes = {(c.at, c.low): c.outcome for c in record.state.changes}
    rows = [
        (
            datetime.fromtimestamp(change.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            change.reason.value,
            change.message,
            outcomes.get((change.at, change.low)) or "",
        )
        for change in reversed(course.changes(record.past))
    ]
    yield _table(("time (UTC)", "reason", "evidence", "outcome"), rows) if rows else "<p>None.</p>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return _scrolled(f"<table><tr>{top}</tr>{body}</table>")


def _scrolled(wide: str) -> str:
    """What a narrow view cannot show at once is moved, not the page."""
    return f'<div class="scroll">{wide}</div>'
