"""The measured table and the laws that fill its gaps."""

from __future__ import annotations

import pytest

from local.simulated_engine.draft import Draft
from local.simulated_engine.growth import cost_growth, idle_tax, plain_growth
from local.simulated_engine.make_table import METHODS, make_table, read_rows
from local.simulated_engine.table import REFERENCE_BATCH, TABLE, Group, read_table
from local.simulated_engine.world import World


def a_group(target: str, method: str, workload: str = "gsm8k") -> Group:
    return next(
        group
        for group in read_table()
        if (group.target, group.method, group.workload) == (target, method, workload)
    )


def test_the_committed_table_is_what_its_maker_writes() -> None:
    """An edit by hand would be lost with the next run and nobody would know its source."""
    assert TABLE.read_text() == make_table(read_rows())


def test_the_table_has_every_measured_row() -> None:
    """A row that got lost would be a group that is never tested."""
    measured = [row for row in read_rows() if row["method"] != "none"]

    assert sum(len(group.arms) for group in read_table()) == len(measured)
    assert len(read_table()) == 52


@pytest.mark.parametrize("row", [row for row in read_rows() if row["method"] != "none"][::7])
def test_goodput_over_plain_decoding_is_the_measured_speedup(row: dict[str, str]) -> None:
    """Else the simulation would reward another K than the hardware does."""
    group = a_group(row["target"], METHODS[row["method"]], row["workload"])
    speculative, plain = Draft(group), Draft(group, speculative=False)
    world = World()

    speedup = speculative.goodput(int(row["K"]), REFERENCE_BATCH, world) / plain.goodput(
        0, REFERENCE_BATCH, world
    )

    assert speedup == pytest.approx(float(row["speedup_vs_ar"]), rel=1e-3)


def test_an_unmeasured_length_takes_the_next_larger_row_cut_short() -> None:
    """Truncation is the better side: extrapolating upwards was off by 15% and more."""
    group = a_group("Qwen/Qwen3-8B", "dflash")

    assert group.lengths == (3, 7, 11, 15)
    assert group.acceptance(5) == group.acceptance(7)[:5]


def test_an_unmeasured_length_costs_what_lies_between_its_neighbours() -> None:
    """Cost is nearly linear in K."""
    group = a_group("Qwen/Qwen3-8B", "dflash")

    assert group.cost(5) == pytest.approx((group.cost(3) + group.cost(7)) / 2)


@pytest.mark.parametrize("group", read_table(), ids=str)
def test_acceptance_never_increases_with_the_position(group: Group) -> None:
    """Position i is accepted only together with all before it."""
    for length in range(1, 20):
        acceptance = group.acceptance(length)
        assert len(acceptance) == length
        assert list(acceptance) == sorted(acceptance, reverse=True)


def test_growth_is_the_measured_grid_at_its_points() -> None:
    """Llama-3.1-8B EAGLE, K=3: 41.85 ms at 256 requests, 9.518 ms at 16; plain 14.49 and 6.899."""
    assert plain_growth(256) == pytest.approx(14.4914 / 6.8988, rel=1e-3)
    assert cost_growth(3, 256) == pytest.approx(2.8878 / 1.3797, rel=1e-3)
    assert cost_growth(3, REFERENCE_BATCH) == 1.0


@pytest.mark.parametrize("length", [1, 3, 5, 7])
def test_speculation_costs_more_the_larger_the_batch(length: int) -> None:
    """Why the schedule is K by batch size (below 4 requests the grid is flat)."""
    growth = [cost_growth(length, batch) for batch in (4, 16, 32, 64, 128, 256, 512)]

    assert growth == sorted(growth)


def test_no_drafts_in_a_speculative_engine_still_cost_the_measured_tax() -> None:
    """K=0 live is not autoregressive: 6.6% at one request, 21.6% at 189."""
    assert idle_tax(1) == pytest.approx(0.066)
    assert idle_tax(189) == pytest.approx(0.216)
    assert idle_tax(1024) == pytest.approx(0.216)
    assert 0.066 < idle_tax(16) < 0.216
