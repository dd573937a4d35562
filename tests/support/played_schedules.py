"""Engines without traffic for pods that run nowhere: the real plugin, without a vLLM around it.

Each reads the schedule of its model from the watched ConfigMap, as it would from the kubelet's
file, and shows it on its page.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import state_json
from live_speculation.schedule import Schedule, ScheduleRefused, parse
from speculative_operator.api.names import LABEL_MODEL, PORT_SPECULATION_NUMBER
from tests.support.api import KubernetesApi, Manifest

CAPACITY = 7
LENGTHS = frozenset(range(CAPACITY + 1))
WATCH_SECONDS = 2
"""After which a watch begins anew, and sees whether it is still wanted."""


@dataclass
class Played:
    """One model's engine and all schedules that were ever written for it."""

    live: LiveSpeculation = field(
        default_factory=lambda: LiveSpeculation(
            Engine("0.33.0", "V2", "eagle3", CAPACITY, 256, LENGTHS)
        )
    )
    schedules: list[Schedule] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _version: int = 0

    def take(self, config_map: Manifest) -> None:
        """A state of the ConfigMap: known ones come again with each watch."""
        version = int(config_map["metadata"]["resourceVersion"])
        if version <= self._version:
            return
        self._version = version
        try:
            schedule = parse(config_map["data"]["schedule.json"].encode(), LENGTHS)
        except ScheduleRefused as refusal:
            self.refused.append(str(refusal))
            return
        if not self.schedules or self.schedules[-1].digest != schedule.digest:
            self.schedules.append(schedule)
        self.live.offer(schedule)
        self.live.table(time.monotonic())
        if self.live.error:
            self.refused.append(self.live.error)


@contextlib.contextmanager
def page(played: Played, address: str) -> Iterator[None]:
    """The plugin's page at an address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(state_json(played.live).encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer((address, PORT_SPECULATION_NUMBER), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def playing(api: KubernetesApi, namespace: str, engines: Mapping[str, Played]) -> Iterator[None]:
    """Hands each model's schedule to its engine until the body is left."""
    over = threading.Event()

    def follow() -> None:
        while not over.is_set():
            for config_map in api.watch("ConfigMap", namespace, WATCH_SECONDS):
                played = engines.get(config_map["metadata"].get("labels", {}).get(LABEL_MODEL, ""))
                if played is not None and "schedule.json" in config_map.get("data", {}):
                    played.take(config_map)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
