"""What the commands print and write, of a recorded model."""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from speculative_operator.api.status import ModelStatus
from speculative_operator.api.tuning import TuningMode
from speculative_operator.cli.course import changes, points, stretches
from speculative_operator.cli.explain import show
from speculative_operator.cli.options import Settings
from speculative_operator.cli.replay import (
    NotPossible,
    changed_by,
    check_bounds,
    in_words,
    rows,
    show_replay,
    summary,
)
from speculative_operator.cli.report import report, write_report
from speculative_operator.cli.source import Found, NothingKnown, record_of
from speculative_operator.tuning.replay import replayed
from speculative_operator.tuning.variant import Restart, Variant
from tests.support.recorded import END, RecordedModel, a_recorded_model
from tests.support.windows import a_policy

WIDTH = 80


@pytest.fixture(scope="module")
def found(recorded: RecordedModel) -> Found:
    """The model as the cluster gives it."""
    status = ModelStatus.read(recorded.model["status"])
    return Found("prod/qwen", status, record_of(recorded.memory))


@pytest.fixture(scope="module")
def page(found: Found) -> str:
    """Its report."""
    return report(found, now=END)


def printed(found: Found, *, width: int = WIDTH, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, highlight=False)
    show(found, now=END + 12, console=console)
    return out.getvalue()


def replay_of(found: Found, settings: Settings) -> str:
    out = io.StringIO()
    show_replay(found, settings, Console(file=out, width=WIDTH, highlight=False))
    return out.getvalue()


def test_explain_tells_goodput_the_next_look_and_every_other_length(found: Found) -> None:
    """The numbers of the status, on one screen."""
    text = printed(found)

    assert text.startswith("prod/qwen  Speculative, K=")
    assert re.search(r"Goodput: [\d.]+ tokens/s a replica, 1\.\d\d times K=0; seen \d+ s ago", text)
    assert "Next look at other K: " in text
    assert re.search(r"^ +0 +[\d.]+ +.* +measured slower by \d+\.\d% ±", text, re.MULTILINE)
    assert "in force" in text
    assert re.search(r"goodput [\d.]+ -> [\d.]+ tokens/s", text)


def test_explain_fits_into_eighty_columns_and_has_no_colour_in_a_pipe(found: Found) -> None:
    """It is read in logs and in chats."""
    text = printed(found)

    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\x1b" not in text
    assert "\x1b[1m" in printed(found, terminal=True)


def test_explain_without_a_history_shows_the_status_and_says_what_is_missing(found: Found) -> None:
    """No right to the ConfigMap, or no traffic yet."""
    text = printed(Found(found.title, found.status, None, "ask for the verb get"))

    assert "measured slower" in text
    assert text.rstrip().endswith("no history: ask for the verb get")


def test_of_engines_without_speculation_no_length_is_said_to_be_in_force(found: Found) -> None:
    """None of them plays one."""
    record = found.recorded()
    restart = Restart(variant=Variant.AUTOREGRESSIVE)
    away = replace(record, state=replace(record.state, restart=restart))
    plain = replace(found, record=away)

    assert "in force" not in printed(plain)
    assert "Last decisions" in printed(plain)
    assert "in force at that batch size" not in report(plain, now=END)
    assert "Why not another K" not in report(plain, now=END)


def test_explain_of_a_model_that_runs_nothing_says_so(found: Found) -> None:
    """No K is in force, not even `None`."""
    assert found.status is not None
    idle = found.status.model_copy(update={"mode": None, "proposal_length": None})

    assert printed(replace(found, status=idle)).startswith("prod/qwen  nothing runs\n")


def test_brackets_in_a_text_of_the_status_are_shown(
    found: Found, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are no commands of the library that draws the table."""
    assert found.status is not None
    decision = found.status.decisions[0].model_copy(update={"message": "K [/] 6 [red]-> 4"})
    status = found.status.model_copy(update={"decisions": (decision,)})

    show(replace(found, status=status), now=END)

    assert "K [/] 6 [red]-> 4" in capsys.readouterr().out


def test_a_model_without_a_status_has_nothing_to_explain() -> None:
    """Nobody works on it."""
    with pytest.raises(NothingKnown, match="is the operator running"):
        show(Found("prod/qwen", None, None), now=END)


def test_replay_with_the_same_settings_says_so(found: Found) -> None:
    """The check that the record is whole."""
    text = replay_of(found, Settings())

    assert "settings as they were" in text
    assert text.rstrip().endswith("It would have played the same.")


def test_replay_shows_both_courses_and_what_the_other_is_worth(found: Found) -> None:
    """K=0 everywhere, although speculation brings 1.6 times as much."""
    text = replay_of(found, Settings(minimum_gain=3.0))

    assert "minimum gain 300%" in text
    worth = re.search(r"expected to bring ([-+][\d.]+)% of goodput", text)
    assert worth is not None
    assert -60 < float(worth[1]) < -20
    assert max(map(len, text.splitlines())) <= WIDTH


def test_replay_tells_engines_without_speculation_apart(found: Found) -> None:
    """Their schedule is that of engines that do not run: equal ones are not the same course."""
    steps = [
        replace(step, entry=replace(step.entry, variant=Variant.AUTOREGRESSIVE))
        for step in replayed(found.recorded().past)
    ]

    text = summary(steps)

    assert f"Another course after {len(steps)} of {len(steps)} decisions (100%)." in text
    assert "expected to bring" not in text
    assert {in_words(row.played) for row in rows(steps)} == {"without"}


def test_replay_tells_which_other_objective_it_was_given(found: Found) -> None:
    """Latency gives up throughput, and nobody should have to guess how much."""
    assert "objective Latency, loss at most 20%" in replay_of(found, Settings(throughput_loss=0.2))
    assert "objective Throughput" in replay_of(found, Settings(throughput_loss=0.0))


def test_bounds_in_replay_hold_from_the_first_window(found: Found) -> None:
    """They are obeyed without evidence."""
    steps = list(replayed(found.recorded().past, changed_by(Settings(low=2, high=3))))

    assert {k for step in steps for _, _, k in step.decision.table} <= {2, 3}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(high=9), "--max 9: the engines are started for K from 0 to 7"),
        (Settings(low=-1), "--min -1: the engines"),
        (Settings(low=5, high=3), "--min 5 is above --max 3"),
    ],
)
def test_bounds_in_replay_that_the_model_cannot_have_are_refused(
    found: Found, settings: Settings, said: str
) -> None:
    """An answer to a question that makes no sense is worth less than none."""
    with pytest.raises(NotPossible, match=re.escape(said)):
        replay_of(found, settings)


def test_a_bound_in_replay_that_the_recorded_one_contradicts_asks_for_both() -> None:
    """One of the two comes from the recorded settings."""
    with pytest.raises(NotPossible, match="give --max, too, which was 2"):
        check_bounds(a_policy(high=2), Settings(low=3))
    with pytest.raises(NotPossible, match="give --min, too, which was 3"):
        check_bounds(a_policy(low=3), Settings(high=2))


def test_the_report_is_one_file_that_needs_no_other(page: str) -> None:
    """It is opened offline, years later."""
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert not re.search(r"@import|url\((?!#)", page)
    assert len(page) < 1_000_000


def test_every_plot_of_the_report_is_sound_and_has_its_curves(page: str) -> None:
    """An empty frame would pass unseen."""
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 4
    for plot in plots:
        tree = ElementTree.fromstring(plot)
        assert len(list(tree.iter("{http://www.w3.org/2000/svg}path"))) > 10
    assert all(f"batch {size}" in plots[2] for size in ("3-4", "9-16", "33-64"))


def test_a_guess_is_told_with_its_error_and_not_drawn(tmp_path: Path) -> None:
    """With tuning off only K in force is ever timed."""
    off = a_recorded_model(tmp_path, mode=TuningMode.OFF)
    found = Found("prod/qwen", ModelStatus.read(off.model["status"]), record_of(off.memory))

    assert re.search(r"6 +\d+ ± \d+ +never ", printed(found))
    plots = re.findall(r"<svg.*?</svg>", report(found, now=END), re.DOTALL)
    assert "batch" not in plots[1] + plots[2]


def test_the_report_tells_every_decision_and_why_not_another(found: Found, page: str) -> None:
    """The tables beside the plots."""
    for change in changes(found.recorded().past):
        assert change.message.replace(">", "&gt;") in page
    assert "MeasuredSlower" in page
    assert "<p>Tuned: " in page
    assert "in force" in page


def test_a_name_cannot_break_the_page(found: Found) -> None:
    """A file from somebody else may be called anything."""
    page = report(Found("<script>x</script>", None, found.record), now=END)

    assert "<script" not in page


def test_a_report_without_a_history_is_not_written(tmp_path: Path) -> None:
    """An empty page would look like an answer."""
    path = tmp_path / "report.html"

    with pytest.raises(NothingKnown, match="no traffic"):
        write_report(Found("a/b", None, None, "no traffic"), path, now=END)
    assert not path.exists()


def test_a_report_that_cannot_be_written_names_the_file(found: Found, tmp_path: Path) -> None:
    """A folder that is not there."""
    with pytest.raises(NothingKnown, match=r"nowhere/report\.html cannot be written: no such file"):
        write_report(found, tmp_path / "nowhere" / "report.html", now=END)


def test_points_are_windows_and_a_gap_breaks_the_curve(found: Found) -> None:
    """A straight line over a night without traffic would be made up."""
    past = found.recorded().past
    windows = [entry for entry in past if entry.window is not None]

    series = points(past)

    assert len(series) == len(windows)
    assert {point.bucket for point in series} >= {4, 16, 64}
    assert len(stretches(series)) == 1
    late = [point.__class__(point.at + 3600, 16, 6, 1.0) for point in series[:3]]
    assert list(map(len, stretches([*series, *late]))) == [len(series), 3]


@pytest.mark.parametrize("missing", ["rich", "plotille", "matplotlib"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    recorded: RecordedModel, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator's image does not have them."""
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(recorded.memory))
    command = "report" if missing == "matplotlib" else "replay"
    for module in tuple(sys.modules):
        if module.startswith(("speculative_operator.cli", missing)):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(sys, "argv", ["kubectl-speculation", command, "-f", str(path)])

    with pytest.raises(SystemExit) as ended:
        importlib.import_module("speculative_operator.cli.main").main()

    assert ended.value.code == (
        f"error: the package {missing} is not installed: from a checkout: pip install '.[cli]'"
    )
