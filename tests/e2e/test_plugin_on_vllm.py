"""The plugin inside a real vLLM on the CPU, for every method that this build can run.

All servers start with the first test and are kept for the whole module: one for each method, and
two that must not come up. The tests on one server follow each other; those that break it are last.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live_speculation.ledger import HELD
from live_speculation.schedule import MAX_BYTES, dense
from local import vllm_environment
from tests.e2e.plugin_breaker import DEATH
from tests.e2e.plugin_server import (
    CAPACITY,
    DEADLINE,
    Server,
    Setup,
    speculating,
    start,
    steady_load,
    wait_for,
)

pytestmark = pytest.mark.timeout(600)

STEPS = 15
"""Timed steps after which a K is taken to be playing."""


def setups() -> dict[str, Setup]:
    """Every server of this module, in the order in which they are started."""
    return {
        "draft_model": Setup(speculating("draft_model", model="draft-noisy"), fork=False),
        "no start": Setup("draft-noisy", ("--kv-cache-memory-bytes", "1")),
        "bad argument": Setup('custom:{"method":"ngram","num_speculative_tokens":0}'),
        "eagle3": Setup(speculating("eagle3", model="eagle3-head")),
        "dflash": Setup(speculating("dflash", model="dflash-head")),
        "mtp": Setup(speculating("mtp"), ("--trust-remote-code",), target="mimo-mtp"),
        "ngram": Setup(speculating("ngram", prompt_lookup_max=4, prompt_lookup_min=1)),
    }


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """Started at once: most of a start is waiting."""
    vllm_environment.build()
    root = tmp_path_factory.mktemp("vllm")
    started = {
        name: start(name, root / name.replace(" ", "-"), setup) for name, setup in setups().items()
    }
    yield started
    for server in started.values():
        server.stop()


@pytest.fixture
def noisy(servers: dict[str, Server]) -> Server:
    """The server whose draft is accepted about half of the time."""
    return servers["draft_model"].ready()


@pytest.mark.parametrize("method", ["draft_model", "eagle3", "dflash", "mtp", "ngram"])
def test_k_changes_under_load_and_greedy_output_stays(
    servers: dict[str, Server], method: str
) -> None:
    """The whole point: no restart, no failed request, the same text at every K."""
    server = servers[method].ready()
    page = server.page()
    assert (page["tunable"], page["method"], page["reason"]) == (True, method, "")
    with steady_load(server) as load:
        for length in (2, 0, 1, CAPACITY):
            before = server.row(length)
            server.play(length)
            wait_for(
                f"{STEPS} steps at K={length}",
                lambda: server.row(length)["steps"] >= before["steps"] + STEPS,  # noqa: B023
            )

    assert load.failures == []
    assert {prompt: len(texts) for prompt, texts in load.outputs.items()} == dict.fromkeys(
        load.outputs, 1
    )
    for length in (1, 2, CAPACITY):
        row = server.row(length)
        if method == "ngram":
            assert row["draft_tokens"] <= length * row["drafts"]
        else:
            assert row["draft_tokens"] == length * row["drafts"]
    assert server.row(0)["drafts"] == 0


def test_interleaved_trials_give_a_step_time_for_every_arm(noisy: Server) -> None:
    """One stretch of traffic, five lengths, each with its error."""
    arms = [0, 1, 2, 3]
    before = {length: noisy.row(length) for length in (*arms, CAPACITY)}
    carried = {length: (HELD - 1) * noisy.unread_cells(length) for length in arms}
    trial = {"batch": [1, 8], "arms": arms, "share": 0.5, "block": 20, "rounds": 3}
    with steady_load(noisy) as load:
        wanted = noisy.play(CAPACITY, [trial])
        wait_for("the trials to end", lambda: noisy.page()["trials"][0]["rounds_left"] == 0)
    assert noisy.page()["hash_in_force"] == wanted
    assert load.failures == []
    assert all(len(texts) == 1 for texts in load.outputs.values())

    print("\nstep time by K from one stretch of traffic, real vLLM on this CPU:")
    for length, earlier in before.items():
        row = {column: value - earlier[column] for column, value in noisy.row(length).items()}
        mean = row["log_us"] / row["steps"]
        spread = math.sqrt(max(0.0, row["log_us_sq"] / row["steps"] - mean**2))
        print(
            f"  K={length}: {math.exp(mean) / 1000:6.2f} ms a step, standard error "
            f"{100 * spread / math.sqrt(row['steps']):.1f}% over {row['steps']:.0f} steps, "
            f"{row['generated'] / row['seconds']:.0f} tokens/s"
        )
        if length != CAPACITY:
            assert 12 <= row["steps"] <= 3 * 18 + carried[length]


TOOL_CALL = r'\{"name": "[a-z]{3,8}", "days": [0-9]{2}\}'
"""A regular expression, as a tool's schema becomes one."""


def test_output_under_a_grammar_is_the_same_at_every_length(noisy: Server) -> None:
    """vLLM masks every token that is checked, drafts too; here also while K changes."""
    said = set()
    with steady_load(noisy) as load:
        for length in (CAPACITY, 0, 1, 2):
            noisy.play(length)
            said.add(noisy.ask("call the tool", grammar=TOOL_CALL))

    (text,) = said
    assert re.fullmatch(TOOL_CALL, text)
    assert load.failures == []


BROKEN_FILES: dict[str, bytes] = {
    "empty": b"",
    "cut": b'{"protocol":1,"table":[[1,8,',
    "no text": b"\x80\x81",
    "too large": b" " * (MAX_BYTES + 1),
    "deep": b"[" * 50_000,
    "another protocol": b'{"protocol":2,"table":[[1,8,1]]}',
    "no table": b'{"protocol":1}',
    "K above the capacity": b'{"protocol":1,"table":[[1,8,5]]}',
    "K below 0": b'{"protocol":1,"table":[[1,8,-1]]}',
    "K of no number": b'{"protocol":1,"table":[[1,8,NaN]]}',
    "ranges out of order": b'{"protocol":1,"table":[[5,8,1],[1,4,1]]}',
    "arm above the capacity": json.dumps(
        {
            "protocol": 1,
            "table": [[1, 8, 1]],
            "trials": [{"batch": [1, 8], "arms": [9], "share": 0.5, "block": 9, "rounds": 9}],
        }
    ).encode(),
}


def test_no_broken_file_fails_a_request_or_changes_k(noisy: Server) -> None:
    """The pods outlive a broken operator."""
    with steady_load(noisy) as load:
        in_force = noisy.play(3)
        for name, data in BROKEN_FILES.items():
            noisy.write(json.dumps({"protocol": 1, "table": [[1, 8, 3]]}).encode())
            wait_for("a good file", lambda: not noisy.page()["error"])
            in_force = noisy.page()["hash_read"]
            noisy.write(data)
            wait_for(f"the error of: {name}", lambda: noisy.page()["error"])
            assert noisy.page()["hash_read"] == in_force, name
        noisy.schedule_file.unlink()
        wait_for("no such file", lambda: "No such file" in noisy.page()["error"])
        answered = load.answered
        wait_for("more answers", lambda: load.answered >= answered + 4)
        assert noisy.page()["hash_in_force"] == in_force

    assert load.failures == []
    assert all(len(texts) == 1 for texts in load.outputs.values())


def test_the_start_schedule_reads_as_vllms_own_builder_reads_it(
    servers: dict[str, Server],
) -> None:
    """The plugin builds the table itself, so that the simulated engine can, without vLLM."""
    tables = [
        [[1, 8, 4]],
        [[1, 2, 4], [5, 6, 1]],
        [[1, 1, 3], [2, 2, 0], [3, 900, 2]],
        [[1, 4, 0], [20, 30, 4]],
    ]
    program = (
        "import json, runpy, sys\n"
        "built = runpy.run_path(sys.argv[1])['build_dynamic_sd_schedule_lookup']\n"
        "print(json.dumps([built(t, 16, 4) for t in json.loads(sys.argv[2])]))\n"
    )
    environment = vllm_environment.folder() / "venv"
    builder = next(environment.glob("lib/*/site-packages/vllm/v1/spec_decode/dynamic/utils.py"))
    printed = subprocess.run(
        [environment / "bin" / "python", "-c", program, builder, json.dumps(tables)],
        capture_output=True,
        check=True,
    ).stdout

    ours = [dense([(low, high, k) for low, high, k in table], 16) for table in tables]
    assert json.loads(printed) == ours


def test_an_error_in_the_api_process_is_in_the_termination_log(
    servers: dict[str, Server],
) -> None:
    """A refused configuration: vLLM prints its reason far above its last lines."""
    server = servers["bad argument"]
    server.process.wait(DEADLINE)

    text = server.termination_log.read_text()
    assert text.startswith("MainProcess: ValidationError: "), server.log()
    assert "num_speculative_tokens" in text


def test_an_error_in_the_core_at_start_is_in_the_termination_log(
    servers: dict[str, Server],
) -> None:
    """The API process then says only that the core failed."""
    server = servers["no start"]
    server.process.wait(DEADLINE)

    text = server.termination_log.read_text()
    assert text.startswith("EngineCore: ValueError: "), server.log()
    assert "at vllm/v1/" in text


def test_a_lost_hook_shows_in_the_hash_in_force_and_the_idle_seconds(
    servers: dict[str, Server],
) -> None:
    """Another vLLM might no longer call the hook: nothing fails, and the page must tell."""
    server = servers["eagle3"].ready()
    with steady_load(server) as load:
        in_force = server.play(2)
        server.request_breaker("unhook")

        def idle_under_load() -> dict[str, Any] | None:
            page = server.page()
            return page if page["running"] and page["idle_seconds"] > 2 else None

        wait_for("a page that is idle under load", idle_under_load)
        data = json.dumps({"protocol": 1, "table": [[1, 8, 1]]}).encode()
        wanted = server.write(data)
        wait_for("the file to be read", lambda: server.page()["hash_read"] == wanted)
        assert server.page()["hash_in_force"] == in_force

    assert load.failures == []


def test_a_hook_that_raises_fails_no_request(servers: dict[str, Server]) -> None:
    """It says so on the page, the trial it was in ends, and the last schedule plays on."""
    server = servers["ngram"].ready()
    trial = {"batch": [1, 8], "arms": [0], "share": 1, "block": 100_000, "rounds": 1}
    with steady_load(server) as load:
        in_force = server.play(2, [trial])
        server.request_breaker("raise")
        wait_for("the fault on the page", lambda: "KeyError" in server.page()["error"])
        answered = load.answered
        wait_for("more answers", lambda: load.answered >= answered + 8)
        page = server.page()
        assert page["hash_in_force"] == in_force
        assert page["trials"][0]["rounds_left"] == 0

    assert load.failures == []
    assert all(len(texts) == 1 for texts in load.outputs.values())


def test_an_error_in_the_serving_core_is_in_the_termination_log(noisy: Server) -> None:
    """Such a server exits with 0: without the log nobody would know why."""
    noisy.request_breaker("die")
    with pytest.raises(OSError, match=r"500|refused|closed|reset"):
        noisy.ask("die")
    noisy.process.wait(DEADLINE)

    text = noisy.termination_log.read_text()
    assert text.startswith(f"EngineCore: RuntimeError: {DEATH}\nat "), noisy.log()


@pytest.mark.long
@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (Setup("draft-noisy"), "started without num_speculative_tokens_per_batch_size"),
        (Setup("none"), "started without speculative decoding"),
        (
            Setup(speculating("draft_model", model="draft-noisy"), ("--disable-log-stats",)),
            "started with --disable-log-stats",
        ),
        (
            Setup(speculating("draft_model", model="draft-noisy"), fork=False, made_for="0.1.0"),
            "is not one of 0.1.0, for which the plugin was written",
        ),
    ],
)
def test_an_engine_that_cannot_be_tuned_serves_on_and_says_why(
    tmp_path: Path, setup: Setup, words: str
) -> None:
    """Whatever vLLM and configuration the plugin meets, the user's server works."""
    server = start("untunable", tmp_path / "server", setup)
    try:
        server.ready()
        with steady_load(server) as load:
            wanted = server.write(b'{"protocol":1,"table":[[1,8,0]]}')
            wait_for("the file to be read", lambda: server.page()["hash_read"] == wanted)
            wait_for("answers", lambda: load.answered >= 8)
        page = server.page()
        assert not page["tunable"]
        assert words in page["reason"]
        assert page["hash_in_force"] is None
        assert load.failures == []
    finally:
        server.stop()
