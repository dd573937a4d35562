"""The pages over HTTP, and their Prometheus text."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from live_speculation.ledger import Outcome
from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import metrics, state
from live_speculation.serving import MAX_CONNECTIONS, PageServer
from tests.support.api import until

ENGINE = Engine(
    "0.33.0+rocm", "V2", "dflash", 4, 2048, frozenset({0, 4}), tunable=False, reason='say "no"\n'
)


@pytest.fixture
def live() -> LiveSpeculation:
    live = LiveSpeculation(ENGINE, load=lambda: (3, 1))
    for batch in (2, 2000):
        for number in range(6):
            live.table(number * 0.01)
            step = live.scheduled(batch, 4, mixed=batch == 2)
            outcome = Outcome(batch, 4 * batch, batch, [batch] * 4, [batch, 0, 0, 0])
            live.finished(step, (number + 1) * 0.01, 2 * batch, outcome, more=True)
    return live


@pytest.fixture
def server(live: LiveSpeculation) -> Iterator[PageServer]:
    server = PageServer(live, 0)
    server.start()
    yield server
    server.shutdown()
    server.server_close()


def get(server: PageServer, path: str) -> tuple[str, bytes]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read()


def answered(server: PageServer) -> bool:
    """Whether it has a place for one more client."""
    try:
        return get(server, "/state")[0] == "application/json"
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return False


def test_state_is_compact_json(server: PageServer, live: LiveSpeculation) -> None:
    """At five thousand pods every byte is read five thousand times."""
    kind, body = get(server, "/state")

    assert kind == "application/json"
    assert b", " not in body.replace(b'say \\"no\\"', b"")
    assert json.loads(body)["rows"] == state(live)["rows"]


def test_metrics_carry_the_same_numbers(server: PageServer, live: LiveSpeculation) -> None:
    """One source, two formats."""
    families = {
        family.name: family
        for family in text_string_to_metric_families(get(server, "/metrics")[1].decode())
    }
    page = state(live)
    for column, name in {
        "steps": "speculation_steps",
        "clipped": "speculation_steps_clipped",
        "seconds": "speculation_step_seconds",
        "log_us": "speculation_step_log_microseconds",
        "log_us_sq": "speculation_step_log_microseconds_squared",
        "drafts": "speculation_drafts",
        "draft_tokens": "speculation_draft_tokens",
        "accepted": "speculation_accepted_tokens",
        "generated": "speculation_generated_tokens",
        "requests": "speculation_request_steps",
    }.items():
        family = families[name]
        index = page["columns"].index(column)
        assert family.type == "counter"
        assert [sample.value for sample in family.samples] == [row[index] for row in page["rows"]]
    assert [sample.labels for sample in families["speculation_steps"].samples] == [
        {"k": "4", "batch": "2", "phase": "mixed"},
        {"k": "4", "batch": "+Inf", "phase": "decode"},
    ]
    assert [sample.value for sample in families["speculation_position_accepted"].samples] == [
        row[3] for row in page["positions"]
    ]
    assert families["speculation_requests_running"].samples[0].value == 3
    assert families["speculation_requests_waiting"].samples[0].value == 1


def test_the_info_metric_names_everything_that_is_not_a_number(live: LiveSpeculation) -> None:
    """Quotes and line ends in a reason must not break the page."""
    families = {family.name: family for family in text_string_to_metric_families(metrics(live))}

    labels = families["speculation_info"].samples[0].labels
    assert labels == {
        "protocol": "1", "plugin": state(live)["plugin"], "vllm": "0.33.0+rocm", "runner": "V2",
        "method": "dflash", "capacity": "4", "measured": "true", "tunable": "false",
        "reason": 'say "no"\n', "hash_read": "", "hash_in_force": "", "error": "",
    }  # fmt: skip


def test_another_path_is_not_found(server: PageServer) -> None:
    """Two pages, nothing else."""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, "/")


def test_clients_that_say_nothing_do_not_shut_the_page(server: PageServer) -> None:
    """They hold all places, are refused beyond them, and time out."""
    silent = [
        socket.create_connection(("127.0.0.1", server.port)) for _ in range(MAX_CONNECTIONS + 2)
    ]
    for one in silent:
        one.close()

    # The last of them may not have been heard to hang up yet.
    assert until("a page", lambda: answered(server))


def test_a_taken_port_is_an_error_for_the_caller_to_survive(
    server: PageServer, live: LiveSpeculation
) -> None:
    """Two engine cores of one server cannot both have it."""
    with pytest.raises(OSError, match="in use"):
        PageServer(live, server.port)
