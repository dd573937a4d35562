"""The books: cells, phases, clipping, and what counts which steps."""

import math

import pytest

from live_speculation.ledger import COLUMNS, EDGES, NO_DRAFTS, Ledger, Outcome, Step


def step(asked: int = 4, batch: int = 3, *, mixed: bool = False, timed: bool = True) -> Step:
    return Step(asked, batch, mixed, timed, began=0.0)


def rows(ledger: Ledger) -> list[dict[str, object]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in ledger.copy().rows]


def fill(ledger: Ledger, seconds: list[float], one: Step | None = None) -> None:
    for value in seconds:
        ledger.book(one or step(), value, 10, NO_DRAFTS)


def test_an_empty_ledger_has_no_rows() -> None:
    """Only non-empty cells are reported: the page stays small."""
    assert rows(Ledger()) == []


@pytest.mark.parametrize(
    ("batch", "cell"),
    [(1, 1), (4, 4), (5, 6), (6, 6), (7, 8), (1024, 1024), (1025, None), (5000, None)],
)
def test_a_batch_is_counted_in_the_cell_of_the_next_edge(batch: int, cell: int | None) -> None:
    """Cells are fixed, the tuner merges them into its buckets."""
    ledger = Ledger()
    fill(ledger, [0.01] * 5, step(batch=batch))

    assert rows(ledger)[0]["cell"] == cell


def test_edges_ascend() -> None:
    """A cell is found by bisection."""
    assert list(EDGES) == sorted(set(EDGES))


def test_length_cell_and_phase_each_have_rows_of_their_own() -> None:
    """Prefill in a step makes it many times as long."""
    ledger = Ledger()
    for one in (step(2), step(4), step(4, 9), step(4, mixed=True)):
        fill(ledger, [0.01] * 5, one)

    assert [(row["k"], row["cell"], row["phase"]) for row in rows(ledger)] == [
        (2, 3, "decode"), (4, 3, "decode"), (4, 3, "mixed"), (4, 12, "decode"),
    ]  # fmt: skip


def test_sums_of_steps_without_outliers_are_plain_sums() -> None:
    """The tuner works on differences of these sums."""
    ledger = Ledger()
    seconds = [0.010, 0.011, 0.012, 0.011, 0.010, 0.012]
    fill(ledger, seconds)

    row = rows(ledger)[0]
    logs = [math.log(value * 1e6) for value in seconds]
    assert (row["steps"], row["clipped"], row["generated"]) == (6, 0, 60)
    assert row["seconds"] == pytest.approx(sum(seconds))
    assert row["log_us"] == pytest.approx(sum(logs))
    assert row["log_us_sq"] == pytest.approx(sum(value**2 for value in logs))


@pytest.mark.parametrize("place", [0, 3, 20])
def test_one_step_of_100_times_the_usual_spoils_no_sum(place: int) -> None:
    """Outliers of 10 to 100 times were seen on a real engine, also as a row's very first step."""
    ledger = Ledger()
    seconds = [0.01] * 40
    seconds[place] = 1.0
    fill(ledger, seconds)

    row = rows(ledger)[0]
    assert (row["steps"], row["clipped"]) == (40, 1)
    assert row["seconds"] == pytest.approx(39 * 0.01 + 0.04)


def test_a_lasting_change_of_step_time_is_followed() -> None:
    """Longer contexts make every step slower: that is no outlier."""
    ledger = Ledger()
    fill(ledger, [0.01] * 40)
    fill(ledger, [0.1] * 40)
    clipped = rows(ledger)[0]["clipped"]
    fill(ledger, [0.1] * 40)

    assert rows(ledger)[0]["clipped"] == clipped


def test_the_first_steps_of_a_row_wait_for_a_median() -> None:
    """Without one, nothing could be clipped."""
    ledger = Ledger()
    fill(ledger, [0.01] * 4)
    assert rows(ledger)[0]["steps"] == 0

    fill(ledger, [0.01])
    assert rows(ledger)[0]["steps"] == 5


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_cannot_be_is_not_booked(seconds: float) -> None:
    """One NaN in a sum would stay there for ever."""
    ledger = Ledger()
    fill(ledger, [0.01] * 5 + [seconds])

    assert rows(ledger)[0]["steps"] == 5


def test_untimed_steps_count_for_acceptance_only() -> None:
    """Acceptance does not depend on the step's time, and drafts are the evidence that is scarce."""
    ledger = Ledger()
    outcome = Outcome(2, 8, 5, (2, 2, 2, 2), (2, 2, 1, 0))
    ledger.book(step(timed=False), 0.01, 7, outcome)

    row = rows(ledger)[0]
    assert (row["steps"], row["generated"], row["seconds"]) == (0, 0, 0.0)
    assert (row["drafts"], row["draft_tokens"], row["accepted"]) == (2, 8, 5)
    assert row["requests"] == 3


def test_positions_are_summed_over_all_batches() -> None:
    """Acceptance by position is one estimate for all buckets."""
    ledger = Ledger()
    ledger.book(step(2, 1), 0.01, 1, Outcome(1, 2, 1, (1, 1, 0), (1, 0, 0)))
    ledger.book(step(2, 7), 0.01, 1, Outcome(2, 3, 3, (2, 1, 0), (2, 1, 0)))
    ledger.book(step(1, 7), 0.01, 1, Outcome(1, 1, 0, (1, 0, 0), (0, 0, 0)))

    assert ledger.copy().positions == [[1, 0, 1, 0], [2, 0, 3, 3], [2, 1, 2, 1]]


def test_accepted_equals_the_sum_over_positions() -> None:
    """The identity the tuner checks on every window: E - 1 = sum of p_i."""
    ledger = Ledger()
    for accepted_at in ((3, 2, 0), (1, 1, 1), (0, 0, 0)):
        ledger.book(step(3), 0.01, 1, Outcome(3, 9, sum(accepted_at), (3, 3, 3), accepted_at))

    books = ledger.copy()
    accepted = books.rows[0][COLUMNS.index("accepted")]
    assert accepted == sum(position[3] for position in books.positions)
