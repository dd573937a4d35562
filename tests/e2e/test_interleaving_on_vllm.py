"""Why trials are interleaved: the same engine measured both ways while the machine is disturbed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from local import vllm_environment
from tests.e2e.plugin_server import CAPACITY, Server, Setup, speculating, start, steady_load
from tests.support.api import until
from tests.support.goodput import Goodput, goodput

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WINDOW_SECONDS = 5.0
ROUNDS = 3
DISTURBED_SECONDS = 11.0
"""Neither a divisor nor a multiple of a window, so that lengths meet different disturbance."""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real vLLM whose draft is accepted at about .61, .38, .21 and .14 by position."""
    vllm_environment.build()
    setup = Setup(speculating("draft_model", model="draft-noisy"))
    server = start("noisy", tmp_path_factory.mktemp("interleaving"), setup)
    yield server.ready()
    server.stop()


def test_interleaved_blocks_find_the_best_length_where_windows_in_turn_drift(
    noisy: Server,
) -> None:
    """Interleaved, all lengths share every disturbance; the best of them is K=1 or 2."""
    lengths = range(CAPACITY + 1)

    with steady_load(noisy) as load, disturbed_on_and_off():
        in_turn = [_played(noisy, length) for _ in range(ROUNDS) for length in lengths]
        interleaved = _interleaved(noisy)

    assert load.failures == []
    drift = max(
        abs(later.tokens_a_second / earlier.tokens_a_second - 1)
        for length in lengths
        for earlier, later in pairwise([one for one in in_turn if one.length == length])
    )
    print("\nwindows in turn, tokens/s:", *in_turn, sep="\n  ")
    print(f"largest change of one length from turn to turn: {100 * drift:.0f}%")
    print("interleaved, tokens/s:", *interleaved, sep="\n  ")
    best = max(interleaved, key=lambda one: one.tokens_a_second)
    assert {one.length for one in interleaved} == set(lengths)
    assert best.length in (1, 2)


def _played(server: Server, length: int) -> Goodput:
    """Goodput of one window with nothing but this length."""
    wanted = server.play(length)
    until("the length is in force", lambda: server.page()["hash_in_force"] == wanted, timeout=60)
    return next(one for one in _window(server, WINDOW_SECONDS) if one.length == length)


def _interleaved(server: Server) -> list[Goodput]:
    """Goodput of all lengths from one stretch of traffic as long as all windows in turn."""
    arms = list(range(CAPACITY))
    trial = {"batch": [1, 8], "arms": arms, "share": 0.5, "block": 20, "rounds": 100}
    wanted = server.play(CAPACITY, [trial])
    until("the trials are in force", lambda: server.page()["hash_in_force"] == wanted, timeout=60)
    return _window(server, ROUNDS * (CAPACITY + 1) * WINDOW_SECONDS)


def _window(server: Server, seconds: float) -> list[Goodput]:
    before, opened = server.page(), time.monotonic()
    until("the window's end", lambda: time.monotonic() - opened >= seconds, timeout=seconds + 60)
    return goodput(before, server.page())


@contextmanager
def disturbed_on_and_off() -> Iterator[None]:
    """Another process that takes a core for some seconds, and lets go of it for as long."""
    program = (
        "import time\n"
        "while True:\n"
        f"    end = time.monotonic() + {DISTURBED_SECONDS}\n"
        "    while time.monotonic() < end: pass\n"
        f"    time.sleep({DISTURBED_SECONDS})\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            yield
        finally:
            process.kill()
