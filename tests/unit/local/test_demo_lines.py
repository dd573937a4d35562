"""What the demo prints while it watches."""

from __future__ import annotations

from local.demo import HEADING, decisions, line

STATUS = {
    "mode": "Speculative",
    "proposalLength": 2,
    "evidence": {"acceptance": "0.512", "acceptanceLength": "2.03", "speedup": "1.24"},
    "conditions": [{"type": "Tuned", "status": "True", "reason": "BestMeasured"}],
    "decisions": [
        {"time": "T2", "message": "batch 1-4: K 4 -> 2"},
        {"time": "T1", "message": "batch 1-4: K 7 -> 4"},
    ],
}


def test_a_row_stands_under_its_heading() -> None:
    """The rows are read as a table while they appear."""
    row = line(75, STATUS, 212.4)

    assert row.split() == [
        "1:15", "Speculative", "2", "0.512", "2.03", "1.24", "212", "BestMeasured",
    ]  # fmt: skip
    assert row.index("BestMeasured") == HEADING.index("tuned")


def test_what_is_not_known_is_a_dash() -> None:
    """A zero would say that no draft is accepted."""
    assert line(5, {}, 0).split() == ["0:05", "-", "-", "-", "-", "-", "0", "-"]


def test_only_new_decisions_are_told_and_the_oldest_first() -> None:
    """Each is printed once, in the order in which they were made."""
    everything = [words for _, words in decisions(STATUS, since="")]

    assert everything == ["batch 1-4: K 7 -> 4", "batch 1-4: K 4 -> 2"]
    assert [at for at, _ in decisions(STATUS, since="T1")] == ["T2"]
