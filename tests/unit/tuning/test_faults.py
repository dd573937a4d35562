"""What no sound draft or counter shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning.faults import broken, first_tokens, recovered, weak, weakness
from speculative_operator.tuning.page import Phase, Position, Proposed, RowKey
from speculative_operator.tuning.window import Window
from tests.support.windows import Traffic


def test_low_but_real_acceptance_is_no_fault() -> None:
    """Whether 0.15 pays is a question of cost, not of health."""
    assert not weak(Traffic((0.15, 0.02, 0.0, 0.0)).window({4: 100}), "eagle3")


def test_hardly_any_first_token_accepted_is_weak() -> None:
    """No sound draft does so badly."""
    assert weak(Traffic((0.05, 0.0, 0.0, 0.0)).window({4: 100}), "eagle3")


@pytest.mark.parametrize(
    ("acceptance", "steps", "faulty"),
    [(0.09, 100, False), (0.08, 100, True), (0.07, 13, False), (0.05, 13, True)],
)
def test_weakness_is_told_by_one_standard_error(
    acceptance: float, steps: int, faulty: bool
) -> None:
    """Two such windows make a fault. A draft at the limit must not be faulty and sound in turn."""
    window = Traffic((acceptance, 0.0, 0.0, 0.0)).window({4: steps})

    assert weak(window, "eagle3") is faulty


def test_too_few_drafts_are_never_weak() -> None:
    """Chance alone can reject a few."""
    assert not weak(Traffic((0.0,) * 4).window({4: 12}), "eagle3")


@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_methods_without_weights_are_never_weak(method: str) -> None:
    """A text that repeats nothing gives bad guesses, and corrupted weights cannot be the cause."""
    assert not weak(Traffic((0.0,) * 4).window({4: 100}), method)


def test_first_tokens_of_every_length_count() -> None:
    """The first position is the same draft at each K."""
    window = Traffic((0.5, 0.1, 0.0, 0.0)).window({4: 30, 1: 10})

    assert first_tokens(window) == (160, 0.5)


@pytest.mark.parametrize(
    ("acceptance", "steps", "sound"),
    [(0.5, 5, True), (0.5, 4, False), (0.12, 100, False), (0.14, 100, True)],
)
def test_recovery_is_told_by_two_standard_errors(
    acceptance: float, steps: int, sound: bool
) -> None:
    """A probe makes few drafts, and a lucky one must not switch speculation on."""
    assert recovered(Traffic((acceptance, 0.0, 0.0, 0.0)).window({1: steps})) is sound


def test_no_acceptance_at_all_names_the_likely_cause() -> None:
    """EAGLE for EAGLE-3, corrupted or stale weights: E is exactly 1."""
    none, few = Traffic((0.0,) * 4).window({4: 50}), Traffic((0.05, 0, 0, 0)).window({4: 50})

    assert weakness(none)[0] is Reason.NO_ACCEPTANCE
    assert "EAGLE-3" in weakness(none)[1]
    assert weakness(few)[0] is Reason.WEAK_ACCEPTANCE
    assert "Fewer than one in ten" in weakness(few)[1]


def test_sound_counters_are_not_broken() -> None:
    """A false alarm would cost trust."""
    assert broken(Traffic().window({4: 100, 2: 7, 0: 20}), "eagle3") is None


@pytest.mark.parametrize("accepted", [0.0, 200.0, 2000.0])
def test_positions_that_do_not_add_up_are_broken(accepted: float) -> None:
    """Their sum is what was accepted, or one of both is wrong."""
    window = Traffic().window({4: 100})
    positions = {**window.positions, Position(4, 2): Proposed(3000.0, accepted)}

    fault = broken(replace(window, positions=positions), "eagle3")

    assert fault is not None
    assert fault.reason is Reason.COUNTERS_INCONSISTENT


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"draft_tokens": 100.0}, "more tokens are accepted than were drafted"),
        ({"generated": 2000.0}, "more tokens are generated than requests"),
    ],
)
def test_sums_that_no_engine_can_have_are_broken(columns: dict[str, float], words: str) -> None:
    """A step gives a request one token and its accepted drafts, never more."""
    window = Traffic().window({4: 100})
    rows = {key: counts._replace(**columns) for key, counts in window.rows.items()}

    fault = broken(replace(window, rows=rows), "eagle3")

    assert fault is not None
    assert words in fault.message


def test_positions_that_rise_are_broken() -> None:
    """A token is only accepted with all before it."""
    window = Traffic((0.2, 0.4, 0.2, 0.1)).window({4: 100})

    fault = broken(window, "eagle3")

    assert fault is not None
    assert "a later position" in fault.message


def test_tokens_that_end_a_request_are_no_contradiction() -> None:
    """Its last step is cut, so fewer are generated than were accepted."""
    window = Traffic().window({4: 100})
    rows = {key: counts._replace(generated=500.0) for key, counts in window.rows.items()}

    assert broken(replace(window, rows=rows), "eagle3") is None


def silent() -> Window:
    """Decoding at K=4 without drafts."""
    row = Traffic().row(4, 100)
    row = row._replace(drafts=0.0, draft_tokens=0.0, accepted=0.0, generated=row.requests)
    return Window(seconds=5.0, rows={RowKey(4, 4, Phase.DECODE): row})


def test_decoding_without_drafts_is_told() -> None:
    """Speculation is silently off."""
    fault = broken(silent(), "eagle3")

    assert fault is not None
    assert fault.reason is Reason.NO_DRAFTS


@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_methods_that_match_may_find_nothing(method: str) -> None:
    """No match is how they work."""
    assert broken(silent(), method) is None
