"""The plots and numbers of docs/choosing-a-method.md are those of the rows."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from tools import study

PAGE = (study.CHECKOUT / "docs" / "choosing-a-method.md").read_text()


@pytest.fixture(scope="module")
def drawn() -> dict[Path, str]:
    return dict(study.files())


@pytest.mark.parametrize("name", ["best", "acceptance", "lengths", "cost"])
def test_a_picture_is_what_the_rows_give(drawn: dict[Path, str], name: str) -> None:
    """A picture that is older than its rows is believed all the same."""
    path = study.PICTURES / f"study-{name}.svg"

    assert path.read_text() == drawn[path]
    assert f"pictures/{path.name}" in PAGE


def test_the_numbers_of_the_page_are_those_of_the_rows() -> None:
    """They are what a reader decides by."""
    found = study.rows()
    slowest = min(found, key=lambda row: row.speedup)

    assert f"{len(found)} of their rows" in PAGE
    assert f"over the {len(found)} rows is {study.acceptance_tells(found):.2f}" in PAGE
    assert f"{slowest.speedup} times plain decoding, has {slowest.acceptance:.0f} %" in PAGE


def test_the_advice_of_the_page_follows_from_the_rows() -> None:
    """Who is fastest where, in the mean of the benchmarks at the best K of each."""
    chosen = study.best(study.rows())
    means = {group: mean(row.speedup for row in rows) for group, rows in chosen.items()}
    fastest = {
        target: max((m for t, m in means if t == target), key=lambda m: means[target, m])
        for target, _ in means
    }

    own_heads = ("Qwen3.5-27B", "Qwen3.5-122B-A10B", "Qwen3.6-27B")
    assert {fastest[target] for target in own_heads} == {"Native MTP"}
    assert fastest["Qwen3-8B"] == "DSpark"
    assert f"{means['Qwen3-8B', 'DSpark']:.1f} at best" in PAGE
    gemma = {method: means["gemma-4-26B-A4B-it", method] for method in ("Gemma 4 MTP", "DFlash")}
    assert {f"{value:.1f}" for value in gemma.values()} == {"2.7"}
    eagle = {target: value for (target, method), value in means.items() if method == "EAGLE-3"}
    assert (
        f"{eagle['gemma-4-26B-A4B-it']:.1f} on Gemma 4, "
        f"{eagle['MiniMax-M3-MXFP8']:.1f} on MiniMax M3, "
        f"{eagle['Qwen3-8B']:.1f} on Qwen3-8B"
    ) in PAGE
