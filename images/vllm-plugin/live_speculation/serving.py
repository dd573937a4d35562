"""Serves the two pages on a port of their own from a daemon thread, on all addresses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

from live_speculation.live import LiveSpeculation
from live_speculation.pages import metrics, state_json

DEFAULT_PORT = 9405
MAX_CONNECTIONS = 8
"""Served at a time: more would take the interpreter away from the engine."""

CLIENT_TIMEOUT = 5.0
"""Seconds that a client may take to send its request or read its answer."""

_Request = socket.socket | tuple[bytes, socket.socket]


class PageServer(ThreadingHTTPServer):
    """Listens from its construction on; `start` begins to answer."""

    daemon_threads = True
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, live: LiveSpeculation, port: int) -> None:
        self.pages: Mapping[str, tuple[str, Callable[[], str]]] = {
            "/state": ("application/json", lambda: state_json(live)),
            "/metrics": ("text/plain; version=0.0.4", lambda: metrics(live)),
        }
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(("", port), _Handler)

    @property
    def port(self) -> int:
        """The one that was asked for, or the one that port 0 became."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Answers from a daemon thread until `shutdown`."""
        threading.Thread(target=self.serve_forever, name="speculation-pages", daemon=True).start()

    def server_bind(self) -> None:
        """As TCPServer, for IPv4 and IPv6. HTTPServer would ask the DNS for its own name first,
        and hold up the engine's start where there is none."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)

    def process_request(self, request: _Request, client_address: object) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: _Request, client_address: object) -> None:
        """A client that went away is no news in the engine's log."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = CLIENT_TIMEOUT

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self.send_error(404)
            return
        kind, render = page
        body = render().encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Says nothing: a page a second would bury the engine's own log."""
