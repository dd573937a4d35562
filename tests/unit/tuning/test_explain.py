"""Numbers and words of the status."""

from __future__ import annotations

import pytest

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.explain import (
    advice_in_words,
    evidence,
    goodput,
    length_in_words,
)
from speculative_operator.tuning.page import Counts, Phase, Position, Proposed, RowKey
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window
from tests.support.windows import NOISY, STEP_MS, Traffic, a_policy, course


def test_evidence_is_of_the_length_that_made_most_steps() -> None:
    """Trials at other lengths would blur it."""
    told = evidence(Traffic().window({4: 300, 0: 20}), None, now=7.0)

    assert told.measured_at == 7.0
    assert told.acceptance == pytest.approx(sum(NOISY) / 4)
    assert told.acceptance_length == pytest.approx(1 + sum(NOISY))
    assert told.positions == pytest.approx(NOISY)


def test_goodput_is_tokens_a_second_while_decoding() -> None:
    """Of one replica: engines work side by side, and each adds its own seconds."""
    told = evidence(Traffic().window({4: 300}), None, now=0.0)

    assert told.goodput == pytest.approx(4 * 2.34 / 0.023, rel=1e-6)


def test_without_step_times_goodput_is_tokens_by_the_clock() -> None:
    """Engines without the plugin show no more."""
    row = Counts(drafts=400, draft_tokens=1600, accepted=536, generated=936, requests=400)
    window = Window(
        seconds=10.0,
        replicas=2,
        rows={RowKey(4, None, Phase.ANY): row},
        positions={Position(4, i): Proposed(400, 134) for i in range(4)},
    )

    told = evidence(window, None, now=0.0)

    assert told.goodput == pytest.approx(936 / 20)
    assert told.acceptance_length == pytest.approx(2.34)
    assert told.speedup is None


def test_at_k_0_there_is_goodput_and_no_acceptance() -> None:
    """Absent is not zero."""
    told = evidence(Traffic().window({0: 300}), None, now=0.0)

    assert told.goodput == pytest.approx(4 / 0.0096)
    assert told.acceptance is None
    assert told.acceptance_length is None
    assert told.positions == ()


def test_the_speed_up_is_over_plain_decoding_on_the_same_engines() -> None:
    """Another machine's baseline proves nothing."""
    state = course(a_policy(), [Traffic()] * 10)[-1].state
    assert state.evidence is not None

    expected = 1.99 * STEP_MS[0] / STEP_MS[2]
    assert state.evidence.speedup == pytest.approx(expected, rel=0.03)


def test_before_plain_decoding_was_timed_there_is_no_speed_up() -> None:
    """Absent, not 1."""
    state = course(a_policy(trial_share=0.0), [Traffic()] * 3)[-1].state

    assert state.evidence is not None
    assert state.evidence.speedup is None


def test_goodput_of_a_batch_range_leaves_the_others_out() -> None:
    """A decision is for these sizes only."""
    window = Window(
        seconds=5.0,
        rows={
            RowKey(4, 4, Phase.DECODE): Counts(seconds=2.0, generated=100),
            RowKey(4, 16, Phase.DECODE): Counts(seconds=1.0, generated=900),
        },
    )

    assert goodput(window, 3, 4, 4) == 50
    assert goodput(window, 9, 16, 4) == 900
    assert goodput(window, 1, 2, 4) is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (((1, 64, 3),), "K=3 at every batch size"),
        (((1, 8, 4), (9, 64, 0)), "K=4 at most traffic, 0 to 4 by batch size"),
    ],
)
def test_lengths_in_words(table: tuple[tuple[int, int, int], ...], words: str) -> None:
    """One K is told as one, a table by its ends."""
    state = course(a_policy(), [Traffic()] * 2)[-1].state

    assert length_in_words(State(table=table, buckets=state.buckets)) == words


def test_advice_names_no_batch_size_that_the_engine_never_has() -> None:
    """Buckets are powers of two, and the largest batch need not be one."""
    policy = a_policy(mode=TuningMode.RECOMMEND, max_num_seqs=6)
    state = course(policy, [Traffic(batch=6)] * 12)[-1].state

    assert advice_in_words(state, policy).startswith("K=2 at batch 5-6 (about +")
