"""`docs/field-reports.md`: what went wrong elsewhere, and the tests that show it here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = CHECKOUT / "docs" / "field-reports.md"
TEST = re.compile(r"`((?:unit|cluster|e2e|chaos)/[\w/]+\.py)::(\w+)`")
ROWS = [
    line
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| reports ")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_report_has_a_test_that_exists(row: str) -> None:
    """A test that is renamed takes the proof away from the page."""
    *_, shown, _ = row.split("|")
    named = TEST.findall(shown)

    assert named
    assert shown.count("`") == 2 * len(named), "something in the last column is no test"
    for file, name in named:
        assert f"def {name}(" in (CHECKOUT / "tests" / file).read_text(), f"{file}::{name}"
