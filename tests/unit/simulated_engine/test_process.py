"""The whole process, started as in a pod: stopped, crashed, refused."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
CONFIG = json.dumps(
    {
        "method": "eagle3",
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": [[1, 7, 3], [8, 8, 0]],
    }
)


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the plugin's init container leaves in a pod."""
    source = ROOT / "images" / "vllm-plugin" / "package.py"
    spec = importlib.util.spec_from_file_location("plugin_package", source)
    assert spec is not None
    assert spec.loader is not None
    package: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    folder = tmp_path_factory.mktemp("plugin")
    package.make(folder)
    return folder


class Process:
    """One simulated `vllm serve`."""

    def __init__(self, folder: Path, plugin: Path, *arguments: str) -> None:
        self.port, self.control_port, self.page_port = (a_free_port() for _ in range(3))
        self.termination_log = folder / "termination-log"
        self.termination_log.touch()
        self._child = subprocess.Popen(
            [
                sys.executable, "-m", "local.simulated_engine", "serve", *arguments,
                "--host", "127.0.0.1", "--port", str(self.port), "--shutdown-timeout", "5",
                "--speculative-config", CONFIG,
            ],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {
                "PYTHONPATH": f"{plugin}:{ROOT}",
                "SIMULATED_CONTROL_PORT": str(self.control_port),
                "SIMULATED_LOAD_SECONDS": "0",
                "SPECULATION_PORT": str(self.page_port),
                "SPECULATION_SCHEDULE": str(folder / "schedule.json"),
                "SPECULATION_TERMINATION_LOG": str(self.termination_log),
            },
        )  # fmt: skip

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def change(self, **wanted: object) -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.control_port}/world",
            data=json.dumps(wanted).encode(),
            headers={"Content-Type": "application/json"},
            method="PATCH",
        )
        urllib.request.urlopen(request).close()

    def stop(self) -> None:
        self._child.send_signal(signal.SIGTERM)

    def ended(self) -> tuple[int, str]:
        """Exit status and what was written to standard error."""
        _, errors = self._child.communicate(timeout=30)
        return self._child.returncode, errors

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()


@pytest.fixture
def server(tmp_path: Path, plugin: Path) -> Iterator[Process]:
    process = Process(tmp_path, plugin, "Qwen/Qwen3-8B")
    wait_until(process.answers)
    yield process
    process.kill()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_plugin_serves_its_page(server: Process) -> None:
    """The plugin counts only as installed where its entry point is found, as in vLLM."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.page_port}/state") as answer:
        page = json.load(answer)

    assert (page["method"], page["capacity"], page["tunable"]) == ("eagle3", 3, True)


def test_a_stopped_server_exits_with_0(server: Process) -> None:
    """As a drained vLLM does."""
    server.stop()

    status, _ = server.ended()

    assert status == 0


def test_a_crash_leaves_its_words_in_the_termination_log_and_exits_with_0(server: Process) -> None:
    """As a real server whose engine core died: only this file says why."""
    server.change(crash="HSA_STATUS_ERROR_EXCEPTION: a test asked for it")

    status, _ = server.ended()

    assert status == 0
    left = server.termination_log.read_text()
    assert "EngineDead: HSA_STATUS_ERROR_EXCEPTION: a test asked for it" in left


def test_a_target_without_rows_says_what_to_set(tmp_path: Path, plugin: Path) -> None:
    """Whoever starts it for another model has to learn what it can play."""
    process = Process(tmp_path, plugin, "org/unknown")

    status, errors = process.ended()

    assert status == 1
    assert "SIMULATED_TARGET" in errors
    assert "Qwen/Qwen3-8B eagle3" in errors
