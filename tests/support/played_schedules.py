"""Engines under load for pods that run nowhere: simulated steps with the real plugin, without a
process of their own.

Each reads the schedule of its model from the watched ConfigMap, as it would from the kubelet's
file, and makes its steps up to now whenever somebody looks at its page.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from live_speculation.schedule import Schedule, ScheduleRefused, parse
from local.simulated_engine.arguments import parse_arguments
from local.simulated_engine.assembly import assemble, choose_group
from local.simulated_engine.draft import Draft, Noise
from local.virtual_time.engine import Traffic, VirtualEngine
from speculative_operator.api.names import PORT_SPECULATION_NUMBER
from tests.support.api import KubernetesApi, Manifest

GROUP = choose_group("Qwen/Qwen3-8B", "eagle3", "gsm8k")
CLIENTS, SLOWDOWN = 8, 2.0
"""Some hundred drafts a second, for few steps of the test's own processor time."""

WATCH_SECONDS = 2
"""After which a watch begins anew, and sees whether it is still wanted."""


class Played:
    """One model's engine and all schedules that were ever written for it."""

    def __init__(self, pod: Manifest, folder: Path, *, seed: int) -> None:
        """As its pod would start it."""
        (container,) = pod["spec"]["containers"]
        arguments = parse_arguments(["serve", *container["args"]])
        draft = Draft(GROUP, noise=Noise(), seed=seed)
        live = assemble(arguments, draft, plugin=True).live
        assert live is not None
        folder.mkdir()
        self.schedules: list[Schedule] = []
        self.refused: list[str] = []
        self._judge = live
        """Is offered each schedule; the engine itself reads the newest twice a second."""
        self._version = 0
        self._engine = VirtualEngine(arguments, draft, folder, epoch=time.time(), seed=seed)
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._engine.change(0.0, slowdown=SLOWDOWN)
        self._engine.send(0.0, Traffic(CLIENTS))

    @property
    def tables(self) -> list[tuple[tuple[int, int, int], ...]]:
        """Those played, each once until there was another one."""
        tables = [schedule.table for schedule in self.schedules]
        return [table for n, table in enumerate(tables) if not n or table != tables[n - 1]]

    def meet(self, acceptance: float) -> None:
        """Other prompts from now on; see `World`."""
        with self._lock:
            self._engine.change(self._now(), acceptance=acceptance)

    def page(self) -> str:
        """The plugin's, of now."""
        with self._lock:
            return self._engine.page(self._now())

    def take(self, config_map: Manifest) -> None:
        """A state of the ConfigMap: known ones come again with each watch."""
        version = int(config_map["metadata"]["resourceVersion"])
        if version <= self._version:
            return
        self._version = version
        text: str = config_map["data"]["schedule.json"]
        with self._lock:
            self._engine.write_schedule(self._now(), text)
        try:
            schedule = parse(text.encode(), self._judge.engine.lengths)
        except ScheduleRefused as refusal:
            self.refused.append(str(refusal))
            return
        if not self.schedules or self.schedules[-1].digest != schedule.digest:
            self.schedules.append(schedule)
        self._judge.offer(schedule)
        self._judge.table(time.monotonic())
        if self._judge.error:
            self.refused.append(self._judge.error)

    def _now(self) -> float:
        return time.monotonic() - self._began


@contextlib.contextmanager
def page(played: Played, address: str) -> Iterator[None]:
    """The plugin's page at an address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(played.page().encode())

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
def watching(
    api: KubernetesApi, kind: str, namespace: str, take: Callable[[Manifest], None]
) -> Iterator[None]:
    """Hands on each state of each object of a kind until the body is left; known ones come again
    with each watch."""
    over = threading.Event()

    def follow() -> None:
        while not over.is_set():
            for found in api.watch(kind, namespace, WATCH_SECONDS):
                take(found)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
