"""The replay benchmark: what it reads and refuses, and that its figures mean what they say."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.replay import __main__ as command
from benchmarks.replay.baselines import BASELINES, Fixed
from benchmarks.replay.engine import Measuring
from benchmarks.replay.episodes import SETS, Data, Episode
from benchmarks.replay.files import (
    COST_COLUMNS,
    ROW_COLUMNS,
    FileRefused,
    geometric,
    read_costs,
    read_groups,
)
from benchmarks.replay.priors import LEAST_GROUPS, VAGUE, priors_without
from benchmarks.replay.score import Summary, outcome, summary
from benchmarks.replay.table import table
from local.simulated_engine.growth import GRID
from local.simulated_engine.make_table import ROWS

Fields = dict[str, str]


def a_row(k: int, **fields: str) -> Fields:
    """A measured K that brings 1 + k/2 tokens a step."""
    positions = ";".join(["0.5"] * k)
    usual = {"source": "s", "target": "t", "method": "mtp", "K": str(k), "hardware": "h"}
    return {**usual, "workload": "w", "per_position": positions, "speedup_vs_ar": "1.1", **fields}


def a_cost(k: int, batch: int, **fields: str) -> Fields:
    usual = {"source": "s", "target": "t", "method": "mtp", "batch": str(batch), "K": str(k)}
    return {**usual, "step_ms": str(5 + k), **fields}


def written(path: Path, columns: tuple[str, ...], rows: list[Fields]) -> Path:
    """A CSV file of these rows; fields that a row does not name are empty."""
    lines = [",".join(columns)]
    lines += [",".join(row.get(name, "") for name in columns) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """One group: K=3 is best, K=1 is slower than plain decoding."""
    lengths = [a_row(1, speedup_vs_ar="0.8"), a_row(3, speedup_vs_ar="1.4")]
    return written(tmp_path / "rows.csv", ROW_COLUMNS, lengths)


@pytest.fixture
def costs(tmp_path: Path) -> Path:
    grid = [a_cost(k, batch) for k in (0, 1, 3) for batch in (1, 4)]
    return written(tmp_path / "costs.csv", COST_COLUMNS, grid)


@pytest.fixture
def data(rows: Path, costs: Path) -> Data:
    return Data(read_groups(rows), read_costs(costs), seeds=1)


def first(name: str, data: Data) -> Episode:
    return next(iter(SETS[name](data)))


def test_the_published_rows_are_read() -> None:
    """The figures of the docs are of these files."""
    groups = read_groups(ROWS)

    assert all(len(group.arms) > 1 for group in groups)
    assert read_costs(GRID)


def test_cost_is_acceptance_length_over_speed_up(rows: Path) -> None:
    """A step's time in autoregressive ones: E / c is the speed-up that was measured."""
    (group,) = read_groups(rows)

    assert group.arms[3].cost == pytest.approx((1 + 3 * 0.5) / 1.4)


def test_acceptance_that_is_known_as_a_length_alone_is_taken_as_geometric() -> None:
    """Such rows have no positions, and their length is to be met."""
    assert 1 + sum(geometric(2.5, 4)) == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (a_row(3, K="x"), "line 3, column K: 'x'; write a whole number from 0 to 64"),
        (a_row(3, target=""), "line 3, column target: empty; write a name"),
        (a_row(3, speedup_vs_ar="nan"), "column speedup_vs_ar: 'nan'; write a number above 0"),
        (a_row(3, per_position="0.5;0.9;0.1"), "write 3 numbers from 0 to 1 that never increase"),
        (a_row(3, per_position="", acceptance_length="9"), "write 1 to K\\+1 = 4"),
        (a_row(1), "a second row of this group with K=1; write one row for each K"),
    ],
)
def test_a_row_that_cannot_be_replayed_is_refused(tmp_path: Path, row: Fields, said: str) -> None:
    """With the place, what is wrong and what to write."""
    path = written(tmp_path / "rows.csv", ROW_COLUMNS, [a_row(1), row])

    with pytest.raises(FileRefused, match=said):
        read_groups(path)


def test_files_that_are_no_rows_are_refused(tmp_path: Path) -> None:
    """A missing file, other columns, a line cut short, and nothing to choose from."""
    with pytest.raises(FileRefused, match=r"none\.csv: cannot be read"):
        read_groups(tmp_path / "none.csv")
    with pytest.raises(FileRefused, match="missing columns per_position"):
        read_groups(written(tmp_path / "a.csv", ROW_COLUMNS[:9], []))
    with pytest.raises(FileRefused, match="no group has two measured K"):
        read_groups(written(tmp_path / "b.csv", ROW_COLUMNS, [a_row(1)]))
    cut = written(tmp_path / "c.csv", ROW_COLUMNS, [])
    cut.write_text(cut.read_text() + "s,t,mtp\n")
    with pytest.raises(FileRefused, match="line 2: not as many fields"):
        read_groups(cut)


def test_a_grid_with_a_hole_is_refused(tmp_path: Path) -> None:
    """Costs are interpolated between its points."""
    grid = [a_cost(0, 1), a_cost(0, 4), a_cost(1, 1)]

    with pytest.raises(FileRefused, match="a row for each pair"):
        read_costs(written(tmp_path / "costs.csv", COST_COLUMNS, grid))


@pytest.mark.parametrize("name", SETS)
def test_an_episode_is_the_same_each_time(name: str) -> None:
    """All policies have to meet the same conditions and the same noise."""
    groups = read_groups(ROWS)[:8]
    data = Data(groups, read_costs(GRID), seeds=1)
    episode, again = first(name, data), first(name, data)

    assert episode == again
    make = BASELINES["UCB1"]
    found = [command.play(each, make(each), Measuring.WHOLE) for each in (episode, again)]
    assert found[0] == found[1]


@pytest.mark.parametrize("k", [0, 1, 3])
def test_the_loss_of_a_fixed_length_is_what_the_rows_say(data: Data, k: int) -> None:
    """Without trials nothing in it is by chance."""
    episode = first("A", data)
    condition = episode.conditions[0]
    goodput = condition.lengths[k] / condition.step_ms[k]

    found = command.play(episode, Fixed(k), Measuring.QUARTER)

    assert found.regret == pytest.approx(1 - goodput / max(condition.goodput.values()))
    assert found.final == pytest.approx(found.regret)
    assert found.against_plain == pytest.approx(1 - goodput * condition.plain_ms)
    assert found.against_live_zero == pytest.approx(1 - goodput / condition.goodput[0])
    assert found.switches == found.late_switches == 0.0
    assert found.close == (k == 3)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_plays_what_the_engine_has(data: Data, name: str) -> None:
    """And loses no more than the worst K would."""
    episode = first("F", data)
    worst = min(condition.goodput[k] for condition in episode.conditions for k in episode.arms)
    best = max(condition.best for condition in episode.conditions)

    found = command.play(episode, BASELINES[name](episode), Measuring.QUARTER)

    assert 0.0 <= found.regret <= 1 - worst / best


def test_a_summary_is_of_all_episodes(data: Data) -> None:
    """In percent; the worst is named."""
    episode = first("A", data)
    outcomes = [command.play(episode, Fixed(k), Measuring.QUARTER) for k in (1, 3)]

    found = summary(outcomes)

    assert found.episodes == 2
    assert found.mean == pytest.approx(100 * outcomes[0].regret / 2)
    assert found.worst == pytest.approx(100 * outcomes[0].regret)
    assert found.within_2_percent == 50.0
    assert found.recovery_windows is None


def test_the_command_writes_every_figure(
    rows: Path, costs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each set and policy, so that a run can be compared with another."""
    out = tmp_path / "figures.json"
    asked = ["--sets", "A", "--seeds", "1", "--policies", "K=0,product", "--json", str(out)]
    files = ["--rows", str(rows), "--costs", str(costs)]
    monkeypatch.setattr(sys, "argv", ["replay", *asked, *files])

    assert command.main() == 0

    body = json.loads(out.read_text())
    assert body["seeds"] == 1
    assert body["sets"].keys() == {"A"}
    for found in body["sets"].values():
        assert found.keys() == {"K=0", *(f"product, {how}" for how in Measuring)}
        for figures in found.values():
            assert figures.keys() == {field.name for field in fields(Summary)}
            assert figures["episodes"] == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--sets", "A,Z"], "no set Z"),
        (["--policies", "best"], r"no policy \['best'\]"),
        (["--measuring", "half"], "there are whole, quarter, interleaved"),
        (["--seeds", "0"], "at least 1"),
        (["--json", "no-such-folder/figures.json"], "no folder no-such-folder"),
    ],
)
def test_a_command_that_asks_for_nothing_there_is_refused(
    asked: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before minutes are spent on the rest."""
    monkeypatch.setattr(sys, "argv", ["replay", *asked])

    with pytest.raises(SystemExit):
        command.main()

    assert re.search(said, capsys.readouterr().err)


def test_a_file_that_is_refused_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason and no trace."""
    monkeypatch.setattr(sys, "argv", ["replay", "--rows", str(tmp_path / "none.csv")])

    assert command.main() == 2
    assert "none.csv: cannot be read" in capsys.readouterr().err


def test_switches_of_the_way_to_the_best_are_told_apart_from_later_ones(data: Data) -> None:
    """On conditions that do not change the second half should have hardly any."""
    episode = first("A", data)
    lengths = [1, 3, 1, *[3] * 37, 1, *[3] * 19]

    found = outcome(episode, [1.0] * len(lengths), lengths)

    assert found.switches == pytest.approx(5 * 720 / 60)
    assert found.late_switches == pytest.approx(2 * 720 / 30)


def test_a_target_alone_in_its_file_is_replayed_with_priors_of_others(data: Data) -> None:
    """Never with what was fitted to itself: the public rows without it, else round numbers."""
    public = read_groups(ROWS)
    alone = priors_without("t", data.groups, public)
    known = priors_without("Qwen/Qwen3-8B", public, public)

    assert alone == priors_without("", public)
    assert known == priors_without("qwen3-8b", public)
    assert known != alone
    assert priors_without("t", data.groups) == {False: VAGUE, True: VAGUE}


def test_few_groups_of_other_targets_are_no_prior(data: Data) -> None:
    """Two or three say nothing of how much drafters differ."""
    public = read_groups(ROWS)
    few = [group for group in public if not group.block and group.target != "t"][: LEAST_GROUPS - 1]

    assert priors_without("t", few)[False] == VAGUE


def test_every_grid_is_met(rows: Path, tmp_path: Path) -> None:
    """A file of costs may be of several products: none of them is left out."""
    grid = [a_cost(k, batch) for k in (0, 1, 3) for batch in (1, 4)]
    steep = [
        a_cost(k, batch, hardware="other", step_ms=str((5 + 9 * k) * batch))
        for k in (0, 1, 3)
        for batch in (1, 16)
    ]
    costs = read_costs(written(tmp_path / "costs.csv", COST_COLUMNS, grid + steep))
    data = Data(read_groups(rows), costs, seeds=2)

    assert len(costs) == 2
    for name in ("B", "D2", "E"):
        slowest = {
            round(max(max(each.step_ms.values()) / each.plain_ms for each in episode.conditions))
            + round(max(each.plain_ms for each in episode.conditions))
            for episode in SETS[name](data)
        }
        assert len(slowest) > 1, name


def test_columns_that_are_not_asked_for_are_no_fault(tmp_path: Path) -> None:
    """Studies have notes of their own; spreadsheets begin files with a mark."""
    path = written(
        tmp_path / "rows.csv", (*ROW_COLUMNS, "note"), [{**a_row(k), "note": "x"} for k in (1, 3)]
    )
    path.write_text("\ufeff" + path.read_text())

    (group,) = read_groups(path)

    assert group.arms.keys() == {1, 3}


def test_a_method_that_nobody_knows_is_replayed_as_a_draft_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And it is said."""
    lengths = [a_row(k, method="Hydra 9") for k in (2, 5)]

    (group,) = read_groups(written(tmp_path / "rows.csv", ROW_COLUMNS, lengths))

    assert group.method == "draft_model"
    assert "'Hydra 9' is not known" in capsys.readouterr().err


def test_a_speed_up_that_is_not_stated_is_that_of_the_throughput(tmp_path: Path) -> None:
    """Where the same study has measured the target without speculation."""
    plain = a_row(0, method="none", per_position="", speedup_vs_ar="", throughput_tok_s="1000")
    fast = {"speedup_vs_ar": "", "throughput_tok_s": "1500"}
    path = written(tmp_path / "rows.csv", ROW_COLUMNS, [plain, a_row(1), a_row(3, **fast)])

    (group,) = read_groups(path)

    assert group.arms[3].cost == pytest.approx(2.5 / 1.5)
    with pytest.raises(FileRefused, match="column speedup_vs_ar: ''"):
        read_groups(written(tmp_path / "no.csv", ROW_COLUMNS, [a_row(1), a_row(3, **fast)]))


def test_a_load_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """With its line."""
    path = written(tmp_path / "rows.csv", ROW_COLUMNS, [a_row(k, concurrency="a") for k in (1, 3)])

    with pytest.raises(FileRefused, match="line 2, column concurrency: 'a'"):
        read_groups(path)


@pytest.mark.parametrize("text", ["", "\n", "source;target;method\na;b;c\n"])
@pytest.mark.parametrize("read", [read_groups, read_costs])
def test_a_file_without_the_columns_is_refused(
    tmp_path: Path, read: Callable[[Path], object], text: str
) -> None:
    """An empty one, too."""
    path = tmp_path / "file.csv"
    path.write_text(text)

    with pytest.raises(FileRefused, match="missing columns"):
        read(path)


@pytest.mark.parametrize("name", SETS)
def test_rows_of_one_block_drafter_at_unusual_lengths_can_be_played(
    name: str, tmp_path: Path
) -> None:
    """No row at K=0, no other target, the shortest K above the usual start."""
    lengths = [
        a_row(k, method="DFlash", workload=workload, speedup_vs_ar=str(1 + k / 20))
        for workload in ("w", "v")
        for k in (9, 31, 64)
    ]
    groups = read_groups(written(tmp_path / "rows.csv", ROW_COLUMNS, lengths))
    grid = [a_cost(k, batch) for k in (0, 2) for batch in (8, 512)]
    costs = read_costs(written(tmp_path / "costs.csv", COST_COLUMNS, grid))
    episode = first(name, Data(groups, costs, seeds=1))
    priors = {episode.target: priors_without(episode.target, groups, read_groups(ROWS))}

    found = command.play(
        episode, command.the_product(Measuring.QUARTER, priors, episode), Measuring.QUARTER
    )

    assert 0.0 <= found.regret < 0.6


def test_the_figures_of_a_run_make_one_table() -> None:
    """A policy that did not play a set has an empty cell there."""
    figures = {"mean": 0.856, "p95": 2.04, "worst": 5.81}

    lines = list(table({"A": {"K=0": figures, "product, quarter": figures}, "B": {"K=0": figures}}))

    assert lines == [
        "| | A | B |",
        "|---|---|---|",
        "| K=0 | 0.86 / 2.0 / 5.8 | 0.86 / 2.0 / 5.8 |",
        "| product, quarter | 0.86 / 2.0 / 5.8 |  |",
    ]
