"""The plugin's page: read as a whole or refused as a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from live_speculation import pages
from live_speculation.ledger import Outcome
from live_speculation.live import Engine, LiveSpeculation
from live_speculation.schedule import digest
from speculative_operator.engine.state_page import parse_state
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import EDGES, Phase, Position, Proposed, RowKey, TrialLeft

COLUMNS = [
    "k", "cell", "phase", "steps", "clipped", "seconds", "log_us", "log_us_sq", "drafts",
    "draft_tokens", "accepted", "generated", "requests",
]  # fmt: skip


def body(**changes: Any) -> dict[str, Any]:
    """A page as in the plugin's description."""
    page = {
        "protocol": 1,
        "plugin": "0.1.0",
        "vllm": "0.33.0",
        "runner": "V1",
        "pid": 7,
        "started": 1795962064.6,
        "method": "draft_model",
        "capacity": 4,
        "tunable": True,
        "reason": "",
        "hash_read": "0123456789ab",
        "hash_in_force": None,
        "error": "",
        "lease": ["uid", 3],
        "running": 3,
        "waiting": 0,
        "idle_seconds": 0.2,
        "prompts": [20, 3],
        "trials": [{"batch": [1, 16], "rounds_left": 12}],
        "edges": list(EDGES),
        "columns": COLUMNS,
        "rows": [
            [4, 4, "decode", 100, 1, 2.3, 1004.0, 10100.0, 400, 1600, 536, 936, 400],
            [0, None, "mixed", 7, 0, 0.1, 60.0, 600.0, 0, 0, 0, 30, 30],
        ],
        "positions": [[4, 0, 400, 244], [4, 1, 400, 152]],
    }
    return page | changes


def text(**changes: Any) -> str:
    return json.dumps(body(**changes), separators=(",", ":"))


def test_a_page_is_read() -> None:
    """Each number reaches the field that it belongs to."""
    page = parse_state(text())

    row = page.counters.rows[RowKey(4, 4, Phase.DECODE)]
    assert (row.steps, row.seconds, row.accepted, row.requests) == (100, 2.3, 536, 400)
    assert page.counters.rows[RowKey(0, None, Phase.MIXED)].generated == 30
    assert page.counters.positions[Position(4, 1)] == Proposed(400, 152)
    assert page.trials == (TrialLeft(1, 16, 12),)
    assert page.lease == ("uid", 3)
    assert page.tunable


def test_the_plugins_own_page_is_read() -> None:
    """Both sides of the format in one test."""
    now = 100.0
    engine = Engine(vllm="0.33.0", runner="V1", method="eagle3", capacity=2, max_batch=8,
                    lengths=frozenset({0, 2}))  # fmt: skip
    live = LiveSpeculation(engine, clock=lambda: now, wall=lambda: 5.0, load=lambda: (4, 1))
    for _ in range(20):
        step = live.scheduled(4, 2, mixed=False)
        now += 0.02
        live.finished(step, now, 10, Outcome(4, 8, 6, (4, 4), (4, 2)), more=True)

    page = parse_state(pages.state_json(live))

    row = page.counters.rows[RowKey(2, 4, Phase.DECODE)]
    assert row.drafts == 80
    assert row.requests == 80
    assert page.counters.positions[Position(2, 0)] == Proposed(80, 80)
    assert (page.running, page.waiting, page.capacity) == (4, 1, 2)
    assert digest(b"") != page.hash_in_force


def test_a_page_cut_at_any_byte_is_refused() -> None:
    """Half a page would read as counters that went back."""
    whole = text().encode()

    for end in range(len(whole)):
        with pytest.raises(PageUnreadable):
            parse_state(whole[:end])


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "-1", "1e999", '"7"', "true", "null"]
)
@pytest.mark.parametrize("field", ["running", "idle_seconds", "pid", "started", "capacity"])
def test_what_no_counter_can_be_is_refused(field: str, number: str) -> None:
    """A decision from such a number would be wrong without a trace."""
    with pytest.raises(PageUnreadable):
        parse_state(text(**{field: "HERE"}).replace('"HERE"', number))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-3", "1e999", '"7"', "true", "null"])
@pytest.mark.parametrize("column", range(3, len(COLUMNS)))
def test_a_sum_that_cannot_be_refuses_the_page(column: int, number: str) -> None:
    """One broken row makes the others doubtful."""
    rows: list[list[Any]] = [list(row) for row in body()["rows"]]
    rows[0][column] = "HERE"

    with pytest.raises(PageUnreadable):
        parse_state(text(rows=rows).replace('"HERE"', number))


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": 2},
        {"protocol": None},
        {"edges": [1, 2, 4]},
        {"columns": COLUMNS[:-2], "rows": []},
        {"rows": [[4, 4, "decode", 1]]},
        {"rows": [[4, 5, "decode", *[0] * 10]]},
        {"rows": [[4, 4, "prefill", *[0] * 10]]},
        {"rows": [[4, 4, "decode", *[0] * 10]] * 2},
        {"rows": "none"},
        {"positions": [[4, 0, 5, 6]]},
        {"positions": [[4, 0, 5]]},
        {"trials": [3]},
        {"prompts": [3]},
        {"prompts": "many"},
        {"trials": [{"batch": [1], "rounds_left": 0}]},
        {"lease": ["uid"]},
        {"tunable": "yes"},
        {"measured": None},
        {"method": None},
        {"hash_read": 3},
    ],
)
def test_a_page_of_another_shape_is_refused(changes: dict[str, Any]) -> None:
    """A newer protocol is not guessed at."""
    with pytest.raises(PageUnreadable):
        parse_state(text(**changes))


@pytest.mark.parametrize("page", ["", "null", "[]", "3", "<html>", "{", "[" * 100_000, b"\xff\xfe"])
def test_what_is_no_page_is_refused(page: str | bytes) -> None:
    """It is no evidence, and no crash."""
    with pytest.raises(EngineSilent):
        parse_state(page)


def test_a_page_beyond_all_measure_is_not_even_parsed() -> None:
    """Parsing costs more memory than the text."""
    with pytest.raises(PageUnreadable, match="bytes"):
        parse_state(" " * 300_000)


def test_columns_go_by_name() -> None:
    """A newer plugin may add some."""
    rows = [[*row, 9.9] for row in body()["rows"]]

    page = parse_state(text(columns=[*COLUMNS, "new"], rows=rows))

    assert page.counters.rows[RowKey(4, 4, Phase.DECODE)].steps == 100


def test_without_request_steps_every_request_had_a_draft() -> None:
    """An older plugin did not count them."""
    rows = [row[:-1] for row in body()["rows"]]

    page = parse_state(text(columns=COLUMNS[:-1], rows=rows))

    assert page.counters.rows[RowKey(4, 4, Phase.DECODE)].requests == 400
    assert page.counters.rows[RowKey(0, None, Phase.MIXED)].requests == 30
