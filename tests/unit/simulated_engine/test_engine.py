"""Continuous batching: who is in a step, what it brings, how long it takes."""

from __future__ import annotations

import itertools

import pytest

from live_speculation.live import Engine as Described
from live_speculation.live import LiveSpeculation
from live_speculation.pages import state
from local.simulated_engine.draft import STILL, Draft, Noise
from local.simulated_engine.engine import Completed, Engine, Request
from local.simulated_engine.table import read_table
from local.simulated_engine.world import World

GROUP = read_table()[0]


def an_engine(
    length: int = 3, *, max_batch: int = 64, speculative: bool = True, noise: Noise = STILL
) -> Engine:
    draft = Draft(GROUP, speculative=speculative, noise=noise, seed=7)
    return Engine(draft, max_batch=max_batch, pick=lambda _: length)


def steps(engine: Engine, count: int, now: float = 0.0) -> list[Completed]:
    completed = []
    for _ in range(count):
        seconds = engine.begin(now)
        if seconds is None:
            break
        now += seconds
        completed.append(engine.complete(now))
    return completed


def test_an_idle_engine_makes_no_step() -> None:
    """Its counters must stand still, or idle time would look like slow steps."""
    assert an_engine().begin(0.0) is None


def test_the_first_step_of_a_request_reads_its_prompt_and_gives_one_token() -> None:
    """A prefill verifies no drafts, so it is in no acceptance."""
    engine = an_engine()
    engine.submit(Request(100, 50, 0.0))

    (first,) = steps(engine, 1)

    assert (first.prompt_tokens, first.generated, first.outcome.drafts) == (100, 1, 0)


def test_a_request_gets_exactly_the_tokens_it_asked_for() -> None:
    """The last step's tokens are cut, as vLLM cuts them at max_tokens."""
    engine = an_engine(5)
    request = Request(10, 41, 0.0)
    engine.submit(request)

    completed = steps(engine, 100)

    assert sum(step.generated for step in completed) == request.generated == 41
    assert engine.load() == (0, 0)


def test_more_requests_than_places_wait() -> None:
    """No batch is larger than --max-num-seqs, where the schedule ends."""
    engine = an_engine(max_batch=2)
    for _ in range(5):
        engine.submit(Request(10, 50, 0.0))

    steps(engine, 1)

    assert engine.load() == (2, 3)


def test_an_aborted_request_leaves_the_batch() -> None:
    """A client that went away must not keep the batch large."""
    engine = an_engine()
    requests = [Request(10, 50, 0.0) for _ in range(2)]
    for request in requests:
        engine.submit(request)
    steps(engine, 2)

    engine.abort(requests[0])

    assert engine.load() == (1, 0)


def test_accepted_tokens_are_the_sum_over_positions() -> None:
    """The identity E - 1 = sum of p_i, by which the tuner recognises broken pages."""
    engine = an_engine(5)
    for _ in range(8):
        engine.submit(Request(10, 200, 0.0))

    for step in steps(engine, 20):
        assert step.outcome.accepted == sum(step.outcome.accepted_at)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_acceptance_over_many_steps_is_the_tables(length: int) -> None:
    """The sampled drafts are what the rows measured."""
    engine = an_engine(length)
    for _ in range(32):
        engine.submit(Request(1, 10_000, 0.0))

    completed = steps(engine, 1000)

    drafts = sum(step.outcome.drafts for step in completed)
    for position, p in enumerate(GROUP.acceptance(length)):
        accepted = sum(step.outcome.accepted_at[position] for step in completed[1:])
        assert accepted / drafts == pytest.approx(p, abs=0.012)


def test_a_collapse_strikes_later_positions_harder() -> None:
    """As a draft that drifts away does: position i falls by scale^i."""
    draft = Draft(GROUP)
    world = World(acceptance=0.5)

    assert draft.mean_tokens(3, world) == pytest.approx(
        1 + sum(p * 0.5**i for i, p in enumerate(GROUP.acceptance(3), 1))
    )


def test_k_zero_is_slower_than_an_engine_without_speculation() -> None:
    """Measured at 6.6 to 21.6%: why there is a restart besides K=0."""
    off, plain = (
        Draft(GROUP, speculative=speculative).mean_seconds(0, 16, World())
        for speculative in (True, False)
    )

    assert 1.06 < off / plain < 1.22


def test_the_same_seed_plays_the_same_steps() -> None:
    """A failing test must fail again."""

    def play() -> list[tuple[float, int]]:
        engine = an_engine(noise=Noise())
        for _ in range(8):
            engine.submit(Request(10, 100, 0.0))
        return [(step.seconds, step.generated) for step in steps(engine, 50)]

    assert play() == play()


def test_step_times_scatter_around_the_table() -> None:
    """Noise with one-sided outliers, and yet the table's median."""
    draft = Draft(GROUP, noise=Noise(drift=0.0), seed=3)
    world = World()

    taken = sorted(draft.seconds(3, 16, 0, world, now) for now in itertools.repeat(0.0, 2001))

    assert taken[1000] == pytest.approx(draft.mean_seconds(3, 16, world), rel=0.01)
    assert taken[-1] > 10 * taken[1000]


def test_steps_are_booked_by_the_length_their_drafts_were_made_with() -> None:
    """The plugin's own books, fed by the simulated steps."""
    now = 0.0
    draft = Draft(GROUP, seed=1)
    described = Described(vllm="0.33.0", capacity=3, max_batch=8, lengths=frozenset({0, 3}))
    live = LiveSpeculation(described, clock=lambda: now)
    engine = Engine(draft, max_batch=8, pick=lambda _: 3, live=live)
    for _ in range(4):
        engine.submit(Request(10, 10_000, 0.0))
    for _ in range(100):
        seconds = engine.begin(now)
        assert seconds is not None
        now += seconds
        engine.complete(now)

    rows = [dict(zip(state(live)["columns"], row, strict=True)) for row in state(live)["rows"]]

    (decode,) = [row for row in rows if row["phase"] == "decode"]
    assert (decode["k"], decode["cell"], decode["drafts"]) == (3, 4, 4 * 99)
    assert decode["seconds"] / decode["steps"] == pytest.approx(
        draft.mean_seconds(3, 4, World()), rel=1e-3
    )
