"""A real `vllm serve` with the plugin on loopback, and steady load on it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from live_speculation.schedule import digest
from local import vllm_environment
from local.paths import CHECKOUT, LOCAL
from tests.support.api import until

PACKAGE = CHECKOUT / "images" / "vllm-plugin" / "package.py"
BREAKER = Path(__file__).parent / "plugin_breaker.py"
HOST = "127.0.0.1"
MAX_NUM_SEQS = 8
CAPACITY = 4
T = TypeVar("T")
DEADLINE = 500.0
"""Seconds for whatever is waited for: only a broken thing takes so long, or a very busy machine."""


def wait_for(what: str, look: Callable[[], T | None]) -> T:
    """The first true value of `look`, as long as a server here may take to start."""
    return until(what, look, timeout=DEADLINE, interval=0.1)


@dataclass
class Server:
    """One server under test. `folder` holds its schedule, termination log, log and requests to
    the breaker."""

    name: str
    folder: Path
    port: int
    page_port: int
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def termination_log(self) -> Path:
        return self.folder / "termination-log"

    @property
    def schedule_file(self) -> Path:
        return self.folder / "schedule" / "schedule.json"

    def ready(self) -> Server:
        """Waits until it serves."""
        wait_for(f"{self.name} to serve: {self.folder / 'log'}", self._healthy_or_dead)
        assert self.process.poll() is None, self.log()
        return self

    def _healthy_or_dead(self) -> bool:
        if self.process.poll() is not None:
            return True
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def page(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.page_url("/state"), timeout=30) as answer:
            page: dict[str, Any] = json.load(answer)
            return page

    def page_url(self, path: str) -> str:
        return f"http://{HOST}:{self.page_port}{path}"

    def row(self, asked: int, phase: str = "decode") -> dict[str, float]:
        """The sums of one K over all batch cells."""
        columns, rows = self._rows(asked, phase)
        return {column: sum(row[column] for row in rows) for column in columns[3:]}

    def unread_cells(self, asked: int) -> int:
        """Batch cells of one K that show no decode step yet. Each may hold back its first few,
        which then appear together with later ones."""
        return sum(row["steps"] == 0 for row in self._rows(asked, "decode")[1])

    def _rows(self, asked: int, phase: str) -> tuple[list[str], list[dict[str, float]]]:
        page = self.page()
        rows = [dict(zip(page["columns"], row, strict=True)) for row in page["rows"]]
        return page["columns"], [row for row in rows if (row["k"], row["phase"]) == (asked, phase)]

    def write(self, data: bytes) -> str:
        """Puts a schedule in place as a ConfigMap does, in one move. Returns its hash."""
        fresh = self.schedule_file.with_suffix(".new")
        fresh.write_bytes(data)
        fresh.replace(self.schedule_file)
        return digest(data)

    def play(self, length: int, trials: list[dict[str, Any]] | None = None) -> str:
        """Asks for one K at every batch size and waits until a step has put it in force."""
        data = json.dumps(
            {
                "protocol": 1,
                "lease": ["test", time.monotonic_ns()],
                "table": [[1, MAX_NUM_SEQS, length]],
                "trials": trials or [],
            }
        )
        wanted = self.write(data.encode())
        wait_for(f"K={length} in force", lambda: self.page()["hash_in_force"] == wanted)
        return wanted

    def ask(self, prompt: str, tokens: int = 40, *, grammar: str = "") -> str:
        """A greedy completion of exactly `tokens` tokens, or of what a regular expression asks
        for, at most twice as many."""
        body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        if grammar:
            body |= {"structured_outputs": {"regex": grammar}, "max_tokens": 2 * tokens}
        else:
            body |= {"ignore_eos": True}
        request = urllib.request.Request(
            f"http://{HOST}:{self.port}/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            text: str = json.load(answer)["choices"][0]["text"]
            return text

    def request_breaker(self, what: str) -> None:
        """See `plugin_breaker`."""
        (self.folder / "breaker" / what).touch()

    def stop(self) -> None:
        """Ends the server and all its processes: they are one session of ours."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Load:
    """What a `steady_load` saw."""

    outputs: dict[str, set[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    answered: int = 0


@contextmanager
def steady_load(server: Server, streams: int = 4) -> Iterator[Load]:
    """`streams` clients, each with a prompt of its own, one request after the other."""
    load, stop = Load(), threading.Event()

    def client(prompt: str) -> None:
        seen = load.outputs.setdefault(prompt, set())
        while not stop.is_set():
            try:
                seen.add(server.ask(prompt))
                load.answered += 1
            except (OSError, ValueError, KeyError) as error:
                load.failures.append(repr(error))
                return

    clients = [
        threading.Thread(target=client, args=(f"the quick brown fox {number} the quick brown",))
        for number in range(streams)
    ]
    for one in clients:
        one.start()
    try:
        yield load
    finally:
        stop.set()
        for one in clients:
            one.join()


@dataclass(frozen=True)
class Setup:
    """How `local/vllm/serve_tiny.sh` is called: mode, options and the target model.

    With `fork` the engine core is forked instead of spawned: it saves one import of everything.
    `made_for` are the vLLM versions that the plugin is made to think it was written for.
    """

    mode: str
    options: tuple[str, ...] = ()
    target: str = "target"
    fork: bool = True
    made_for: str | None = None


def start(name: str, folder: Path, setup: Setup) -> Server:
    """Starts a server with plugin and breaker; `Server.ready` waits for it."""
    environment = vllm_environment.folder()
    for sub in ("plugins", "schedule", "breaker"):
        (folder / sub).mkdir(parents=True)
    subprocess.run([sys.executable, PACKAGE, folder / "plugins"], check=True)
    _add_breaker(folder / "plugins")
    if setup.made_for is not None:
        facts = folder / "plugins" / "live_speculation" / "assumptions.py"
        text, count = re.subn(
            r"^VERSIONS = .*$",
            f"VERSIONS = ({setup.made_for!r},)",
            facts.read_text(),
            flags=re.MULTILINE,
        )
        assert count == 1
        facts.write_text(text)
    (folder / "termination-log").touch()
    server = Server(name, folder, _free_port(), _free_port())
    variables = {
        **os.environ,
        "HOST": HOST,
        "PORT": str(server.port),
        "MODELS": str(environment / "models"),
        "MODEL": setup.target,
        "VENV": str(environment / "venv"),
        "MAXSEQS": str(MAX_NUM_SEQS),
        "PYTHONPATH": str(folder / "plugins"),
        "PLUGIN_BREAKER": str(folder / "breaker"),
        "SPECULATION_SCHEDULE": str(server.schedule_file),
        "SPECULATION_PORT": str(server.page_port),
        "SPECULATION_TERMINATION_LOG": str(server.termination_log),
    }
    if setup.fork:
        python = environment / "venv" / "bin" / "python"
        variables["VLLM_CMD"] = f"{python} {LOCAL / 'vllm' / 'fast_serve.py'}"
    with (folder / "log").open("wb") as log:
        server.process = subprocess.Popen(
            [LOCAL / "vllm" / "serve_tiny.sh", setup.mode, *setup.options],
            env=variables,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return server


def speculating(method: str, **settings: object) -> str:
    """The mode of `serve_tiny.sh` for a live-tunable engine of CAPACITY."""
    models = vllm_environment.folder() / "models"
    config: dict[str, object] = {
        "method": method,
        "num_speculative_tokens": CAPACITY,
        "num_speculative_tokens_per_batch_size": [[1, MAX_NUM_SEQS, CAPACITY]],
        **settings,
    }
    if isinstance(draft := config.get("model"), str):
        config["model"] = str(models / draft)
    return "custom:" + json.dumps(config)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _add_breaker(plugins: Path) -> None:
    shutil.copy(BREAKER, plugins)
    info = plugins / "plugin_breaker-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-breaker\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[vllm.general_plugins]\nplugin_breaker = plugin_breaker:register\n"
    )
