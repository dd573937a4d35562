"""The gate between an operator and the API server, before a server of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3
import yaml

from local.access import ClusterAccess
from tests.support.gate import Events, Gate, Write

PODS = "/api/v1/namespaces/ours/pods"
EVENTS = [b'{"type":"ADDED"}\n', b'{"type":"ERROR","object":{"code":410}}\n']


class Server(BaseHTTPRequestHandler):
    """Says what it was asked; a watch has two events."""

    def do_GET(self) -> None:
        if "watch=true" in self.path:
            self._answer(200, b"".join(EVENTS))
        else:
            self._answer(200, f"{self.path} by {self.headers['User-Agent']}".encode())

    def do_PATCH(self) -> None:
        length = int(self.headers["Content-Length"])
        self._answer(409 if b"old" in self.rfile.read(length) else 200, b"{}")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate that is open."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        ],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    with Gate(ClusterAccess(file, "c", is_local=False), "who").serving() as made:
        yield made
    server.shutdown()
    server.server_close()


def ask(gate: Gate, verb: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    answer = urllib3.request(verb, f"{gate.url}{path}", body=body, timeout=5, retries=False)
    return answer.status, answer.data


def test_a_request_goes_through_as_it_was_asked(gate: Gate) -> None:
    """With the agent by which the audit log tells who came through; reads are not recorded."""
    path = f"{PODS}?labelSelector=a%2Fb%3Dc"

    assert ask(gate, "GET", path) == (200, f"{path} by who".encode())
    assert gate.writes == []


def test_each_write_is_recorded_before_its_answer_is_given(gate: Gate) -> None:
    """Refused ones too: a conflict is what two writers have."""
    seen: list[Write] = []
    gate.on_write = seen.append

    statuses = [ask(gate, "PATCH", f"{PODS}/one/status", body)[0] for body in (b"new", b"old")]

    assert statuses == [200, 409]
    assert [str(write) for write in seen] == [
        "PATCH pods/one/status (200)",
        "PATCH pods/one/status (409)",
    ]
    assert gate.writes == seen


def test_nothing_goes_through_while_it_is_shut(gate: Gate) -> None:
    """As when a cable is cut: no answer, and no error either."""
    gate.shut()
    with pytest.raises(urllib3.exceptions.TimeoutError):
        urllib3.request("GET", f"{gate.url}{PODS}", timeout=0.5, retries=False)
    gate.open()

    assert ask(gate, "GET", PODS)[0] == 200


def test_events_of_a_watch_come_twice_in_their_order(gate: Gate) -> None:
    """And an expired watch is counted."""
    gate.events = Events(late=0.01, times=2)

    _, body = ask(gate, "GET", f"{PODS}?watch=true")

    assert body == b"".join((EVENTS[0], EVENTS[0], EVENTS[1], EVENTS[1]))
    assert gate.expired == 1
