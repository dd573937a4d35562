"""The command line of `vllm serve`, as the operator renders it."""

from __future__ import annotations

import json

import pytest

from local.simulated_engine.arguments import Speculation, parse_arguments

CONFIG = {
    "method": "eagle3",
    "model": "org/draft",
    "num_speculative_tokens": 3,
    "num_speculative_tokens_per_batch_size": [[1, 62, 3], [63, 63, 1], [64, 64, 0]],
}


def test_the_speculative_config_is_read_with_its_schedule() -> None:
    """The schedule's lengths are those that can be played live."""
    arguments = parse_arguments(["serve", "m", "--speculative-config", json.dumps(CONFIG)])

    assert arguments.speculation == Speculation("eagle3", 3, ((1, 62, 3), (63, 63, 1), (64, 64, 0)))


def test_without_a_config_the_engine_is_autoregressive() -> None:
    """The fallback by restart starts such an engine."""
    assert parse_arguments(["serve", "m"]).speculation is None


def test_unknown_flags_are_ignored_with_their_values() -> None:
    """vLLM has hundreds; a new one in the operator must not need an edit here."""
    arguments = parse_arguments(
        ["serve", "m", "--gpu-memory-utilization", "0.9", "--enforce-eager", "--port", "8001"]
    )

    assert (arguments.model, arguments.port) == ("m", 8001)


def test_underscores_and_equals_signs_mean_the_same() -> None:
    """vLLM takes both spellings."""
    assert parse_arguments(["serve", "m", "--max_num_seqs=8"]).max_batch == 8


def test_served_names_replace_the_models_own() -> None:
    """Requests name the model by one of these; the first labels the metrics."""
    assert parse_arguments(["serve", "m"]).served_names == ("m",)
    assert parse_arguments(["serve", "m", "--served-model-name", "a", "b"]).served_names == (
        "a",
        "b",
    )


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"method":"mtp"}'])
def test_a_config_that_vllm_could_not_read_exits_with_2(text: str) -> None:
    """As the real parser does, at once and not after loading."""
    with pytest.raises(SystemExit) as exit_:
        parse_arguments(["serve", "m", "--speculative-config", text])

    assert exit_.value.code == 2
