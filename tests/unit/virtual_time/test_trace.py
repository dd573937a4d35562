"""A trace with shifts: load, prompts and acceptance change unannounced, and K follows."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.support import trace

LEAST = 0.97
"""Of the tokens of an oracle that knows the best K of each phase before."""

LEAST_OF_A_PHASE = 0.9
"""Of a phase's best K: a way back that is not found costs nearly half of it."""

NOISE = 0.02
"""Shares of two runs differ by so much for what their noise hides for a window or two."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> trace.Played:
    """The operator lives through the whole trace."""
    return trace.play(tmp_path_factory.mktemp("trace") / "undisturbed")


def test_it_makes_nearly_the_tokens_of_an_oracle_and_more_than_any_fixed_length(
    undisturbed: trace.Played,
) -> None:
    """What tuning is for: no fixed K fits all hours of a day."""
    print("", *undisturbed.lines(trace.TRACE), sep="\n  ")
    assert undisturbed.share >= LEAST
    assert sum(undisturbed.tuned) > undisturbed.best_fixed
    for phase, tuned, fixed in zip(trace.TRACE, undisturbed.tuned, undisturbed.fixed, strict=True):
        assert tuned >= LEAST_OF_A_PHASE * max(fixed.values()), phase.name


def test_an_operator_that_is_restarted_every_20_seconds_does_as_well(
    undisturbed: trace.Played, tmp_path: Path
) -> None:
    """Killed, not stopped: it knows what was saved, and the engines' counters since then."""
    restarted = trace.play(tmp_path / "restarted", restart_every=20.0)

    print("", *restarted.lines(trace.TRACE), sep="\n  ")
    assert restarted.share >= undisturbed.share - NOISE


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_on_average_restarts_every_20_seconds_cost_nothing_beyond_the_noise(tmp_path: Path) -> None:
    """One pair of runs may hide what several show."""
    pairs = [
        (
            trace.play(tmp_path / f"{seed}", seed=seed).share,
            trace.play(tmp_path / f"{seed}-restarted", seed=seed, restart_every=20.0).share,
        )
        for seed in (100, 200, 300, 400)
    ]

    undisturbed, restarted = map(statistics.mean, zip(*pairs, strict=True))
    noise = statistics.stdev(share for share, _ in pairs)
    print(f"\nundisturbed {undisturbed:.1%} ± {noise:.1%}, restarted {restarted:.1%}:", *pairs)
    assert restarted >= undisturbed - max(noise, NOISE / 2)
    assert min(share for _, share in pairs) >= LEAST
