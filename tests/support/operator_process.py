"""The operator as a process of its own against the cluster under test, for one namespace."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from local.access import ClusterAccess
from local.paths import CHECKOUT
from tests.support.api import KubernetesApi, until

ENGINE_IMAGE = "example/engine:1"
PLUGIN_IMAGE = "example/plugin:1"
LEASE = "speculative-operator"
LEADS = '"message": "leading"'
"""In the log once the Lease is held: until then the process only watches."""


def _free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@dataclass
class OperatorProcess:
    """Starts, stops and kills one operator. Its Lease lies in the namespace that it looks at."""

    access: ClusterAccess
    namespace: str
    folder: Path
    engine_image: str = ENGINE_IMAGE
    plugin_image: str = PLUGIN_IMAGE
    port: int = field(default_factory=_free_port)
    replica: str = ""
    """Tells several operators of one namespace apart."""
    server: str | None = None
    """Where it finds the API server, if not where the kubeconfig says."""
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def name(self) -> str:
        """Its user agent and identity: tells its requests from others' in the audit log."""
        return f"operator-of-{self.namespace}{self.replica}"

    @property
    def identity(self) -> str:
        """Who holds the Lease while this one leads: another one with each start."""
        return f"{self.name}-{self.starts}"

    def start(self) -> None:
        """Returns once it leads: a test never meets an operator that still waits for its Lease."""
        self.launch()
        until("the operator leads", self._leads)

    def launch(self) -> None:
        """Starts it, whoever leads."""
        self.starts += 1
        self.process = subprocess.Popen(
            [sys.executable, "-m", "speculative_operator.main", *self.arguments()],
            env=self.environment(self.identity),
            stderr=(self.folder / f"operator-{self.starts}.log").open("wb"),
        )

    def arguments(self) -> tuple[str, ...]:
        """Of its command line."""
        return (
            f"--kubeconfig={self._kubeconfig()}",
            f"--namespaces={self.namespace}",
            f"--port={self.port}",
        )

    def environment(self, pod: str) -> dict[str, str]:
        """As the chart sets it; `pod` is who holds the Lease."""
        return {
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / "operator"),
            "SPM_ENGINE_IMAGE": self.engine_image,
            "SPM_PLUGIN_IMAGE": self.plugin_image,
            "SPM_LEASE_NAMESPACE": self.namespace,
            "SPM_LEASE_NAME": LEASE,
            "SPM_POD_NAME": pod,
        }

    def stop(self) -> int:
        """As the kubelet stops it; its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self, *, long_ago: bool = True) -> int:
        """As a machine dies; long ago, its Lease has run out, else the next one waits for that."""
        status = self._end(signal.SIGKILL)
        if long_ago:
            KubernetesApi(self.access).delete("Lease", self.namespace, LEASE)
        return status

    def freeze(self) -> None:
        """It stands still, as on a machine that swaps; its connections stay."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """It goes on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def wait(self) -> int:
        """Until it ends by itself; its exit status."""
        assert self.process is not None
        status = self.process.wait(timeout=60)
        self.process = None
        return status

    def log(self) -> str:
        """What the process that was started last has written."""
        return (self.folder / f"operator-{self.starts}.log").read_text()

    def page(self, path: str) -> str:
        """One of its own pages: /metrics, /readyz."""
        url = f"http://127.0.0.1:{self.port}{path}"
        with closing(urllib.request.urlopen(url, timeout=5)) as answer:
            text: str = answer.read().decode()
        return text

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(timeout=30)
        self.process = None
        return status

    def _leads(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the operator has ended:\n{self.log()}"
        return LEADS in self.log()

    def _kubeconfig(self) -> Path:
        """The cluster's, with the context under test as the current one."""
        chosen = yaml.safe_load(self.access.kubeconfig.read_text())
        chosen["current-context"] = self.access.context
        if self.server is not None:
            for entry in chosen["clusters"]:
                entry["cluster"] = {"server": self.server}
        file = self.folder / "kubeconfig"
        file.write_text(yaml.safe_dump(chosen))
        file.chmod(0o600)
        return file
