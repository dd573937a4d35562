"""Engines that a test lets end before they serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.simulated_engine.ending import end_if_asked

SPECULATIVE = ["serve", "m", "--speculative-config", '{"method":"eagle3","attention_backend":"X"}']
PLAIN = ["serve", "m"]


@pytest.mark.parametrize(
    ("arguments", "part", "ends"),
    [
        (PLAIN, None, True),
        (SPECULATIVE, None, True),
        (SPECULATIVE, "speculation", True),
        (SPECULATIVE, "attention_backend", True),
        (SPECULATIVE, "moe_backend", False),
        (PLAIN, "speculation", False),
    ],
)
def test_it_ends_only_with_the_part_that_is_at_fault(
    tmp_path: Path, arguments: list[str], part: str | None, ends: bool
) -> None:
    """Or a stand-in without that part would end as well."""
    log = tmp_path / "termination-log"
    log.touch()
    environment = {"SIMULATED_END": "no", **({} if part is None else {"SIMULATED_END_IF": part})}
    try:
        end_if_asked(arguments, environment, log)
        left = 0
    except SystemExit as end:
        left = 1
        assert end.code == "no"

    assert left == ends
    assert log.read_text() == ("no" if ends else "")


def test_nobody_who_does_not_ask_for_it_is_ended(tmp_path: Path) -> None:
    """Every other simulated engine."""
    end_if_asked(PLAIN, {}, tmp_path / "none")
