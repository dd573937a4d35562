"""A real Prometheus beside the local cluster, with the scrape configuration that the docs give."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.addresses import NODE_ADDRESS
from local.install import PROMETHEUS_PORT
from tests.support.api import until
from tests.support.doc_manifests import PROMETHEUS, yaml_blocks

ADDRESS = f"{NODE_ADDRESS}:{PROMETHEUS_PORT}"


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    process: subprocess.Popen[bytes]
    started: float
    """Unix time."""

    def query(self, expression: str, at: float | None = None) -> list[Mapping[str, Any]]:
        """The result of an instant query, now or at a moment in Unix time."""
        asked = {"query": expression, **({} if at is None else {"time": str(at)})}
        body = urllib.parse.urlencode(asked).encode()
        try:
            with urllib.request.urlopen(f"http://{ADDRESS}/api/v1/query", body, 30) as answer:
                result: list[Mapping[str, Any]] = json.loads(answer.read())["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        return result

    def value(self, expression: str) -> float:
        """The sum of what an expression gives; 0 for nothing."""
        return sum(float(series["value"][1]) for series in self.query(expression))

    def alerts(self) -> list[str]:
        """The alerts that it has rules for."""
        with urllib.request.urlopen(
            f"http://{ADDRESS}/api/v1/rules?type=alert", None, 30
        ) as answer:
            groups = json.loads(answer.read())["data"]["groups"]
        return [rule["name"] for group in groups for rule in group["rules"]]

    def stop(self) -> None:
        """As an outage does it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def prometheus(folder: Path, configuration: Mapping[str, Any]) -> Iterator[Prometheus]:
    """Runs with a configuration for as long as the body does."""
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(configuration))
    log = (folder / "prometheus.log").open("wb")
    command = (
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={ADDRESS}",
    )
    started = time.time()
    process = subprocess.Popen(command, stdout=log, stderr=log)
    running = Prometheus(process, started)
    try:
        until("Prometheus is ready", lambda: process.poll() is not None or _ready(), timeout=30)
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        yield running
    finally:
        running.stop()
        log.close()


def _ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://{ADDRESS}/-/ready", timeout=5):
            return True
    except OSError:
        return False


def as_documented(discovery: list[dict[str, Any]]) -> Mapping[str, Any]:
    """The block in the docs, with pods discovered so, and scraped every second."""
    (block,) = (block for block in yaml_blocks() if block.mark == PROMETHEUS)
    jobs = yaml.safe_load(block.text)["scrape_configs"]
    return {"scrape_configs": [scraped(job, discovery) for job in jobs]}


def scraped(job: Mapping[str, Any], discovery: list[dict[str, Any]]) -> Mapping[str, Any]:
    """A job with its own discovery of pods replaced, every second."""
    kept = {name: value for name, value in job.items() if name != "kubernetes_sd_configs"}
    return {**kept, "file_sd_configs": discovery, "scrape_interval": "1s", "scrape_timeout": "1s"}
