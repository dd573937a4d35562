"""What a fault can reach: the model, its operator, its clients, and the node's own programs."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import urllib3

from local import devices
from local.addresses import ETCD_URL
from local.machine import Machine
from speculative_operator.api.names import ANNOTATION_LOOK
from speculative_operator.tuning.memory import from_data, to_data
from tests.chaos import checker
from tests.chaos.clients import Clients
from tests.chaos.kept_operator import KeptOperator
from tests.chaos.picture import Picture, take
from tests.support.api import KubernetesApi, Manifest, Refused, condition, until
from tests.support.gate import Gate
from tests.support.gpus import offer
from tests.support.served import Served

ROLLOUT = {"strategy": "Surge", "trial": {"mode": "Off"}}
"""Only the faults of a trial wait until a new revision is compared."""

HEALED_WITHIN = 120.0
"""Seconds."""


@dataclass
class Stage:
    """One model with two replicas under steady load, and an operator behind a gate."""

    api: KubernetesApi
    served: Served
    operator: KeptOperator
    gate: Gate
    clients: Clients
    node: Machine
    edits: int = field(default=0)

    # The cluster.

    def kill(self, program: str) -> None:
        """The supervisor starts it again a second later."""
        os.kill(self.node.programs()[program], signal.SIGKILL)

    @contextlib.contextmanager
    def stopped(self, program: str) -> Iterator[None]:
        """The program stands still, as on a machine that swaps."""
        pid = self.node.programs()[program]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        """Nothing goes between the operator and the API server."""
        self.gate.shut()
        try:
            yield
        finally:
            self.gate.open()

    def restart_api_server(self) -> None:
        """Returns once the new one answers."""
        self.kill("kube-apiserver")
        until("the API server is gone", lambda: not self._api_server_answers(), interval=0.05)
        until("the API server answers", self._api_server_answers)

    def _api_server_answers(self) -> bool:
        try:
            return bool(self.api.call("GET", "/api/v1/namespaces/default"))
        except (Refused, urllib3.exceptions.HTTPError):
            return False

    def compact(self) -> None:
        """etcd forgets all that was before now."""
        found = _etcd("kv/range", {"key": base64.b64encode(b"/registry").decode()})
        _etcd("kv/compaction", {"revision": found["header"]["revision"], "physical": True})

    # The model.

    def new_spec(self) -> None:
        """A change that needs new pods."""
        self.edits += 1
        self.served.change({"model": {"maxNumSeqs": 64 - self.edits % 32}})

    @contextlib.contextmanager
    def rolled(self, rollout: Manifest) -> Iterator[None]:
        """Rollouts go so for a while."""
        self.served.change({"rollout": rollout})
        try:
            yield
        finally:
            self.served.change({"rollout": {**dict.fromkeys(rollout), **ROLLOUT}})

    @contextlib.contextmanager
    def only_gpus(self, count: int) -> Iterator[None]:
        """The node offers no more."""
        offer(self.api, count)
        try:
            yield
        finally:
            offer(self.api, devices.DEFAULT_COUNT)

    def owe(self, seconds: float) -> None:
        """The tuner remembers so many seconds of goodput that engines without speculation would
        have brought: as after hours on traffic that they serve better."""
        where = ("ConfigMap", self.served.namespace, f"{self.served.name}-tuning")
        with self.operator.away():
            kept = self.api.get(*where)
            assert kept is not None
            binary = {name: base64.b64decode(each) for name, each in kept["binaryData"].items()}
            memory = from_data(kept["data"], binary)
            owing = {
                key: replace(state, restart=replace(state.restart, owed=seconds))
                for key, state in memory.revisions.items()
            }
            data = to_data(replace(memory, revisions=owing))
            binary_text = {
                name: base64.b64encode(each).decode() for name, each in data.binary_data.items()
            }
            self.api.merge(*where, {"data": dict(data.data), "binaryData": binary_text})

    def until_measured_anew(self) -> None:
        """A window that began after now has closed."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.served.wait_measured("evidence", lambda found: found.get("measuredAt", "") > now)

    def small_edit(self) -> None:
        """A change that needs no new pods."""
        self.edits += 1
        self.served.change({"service": {"annotations": {"edited": str(self.edits)}}})

    def ask_for_a_look(self) -> None:
        """As a user who has mended something and will not wait for the next look."""
        self.edits += 1
        asked = {"metadata": {"annotations": {ANNOTATION_LOOK: str(self.edits)}}}
        self.api.merge("SpeculativeModel", self.served.namespace, self.served.name, asked)

    def until_settled(self) -> None:
        """The newest spec is what runs."""
        self.served.wait("it is settled", _settled, timeout=HEALED_WITHIN)

    def world(self, **conditions: Any) -> None:
        """Changes every engine."""
        for pod in self.served.pods():
            self.served.world(address=pod["status"]["podIP"], **conditions)

    def sit(self, seconds: float) -> None:
        """Lets a fault last."""
        time.sleep(seconds)

    def healed(self) -> Picture:
        """The picture once nothing is wrong with it."""
        complaints: list[str] = ["nothing was seen"]
        seen: list[Picture] = []

        def probe() -> bool:
            try:
                seen[:] = [take(self.served)]
            except (Refused, urllib3.exceptions.HTTPError) as error:
                complaints[:] = [str(error)]
                return False
            complaints[:] = [*checker.state(seen[0]), *checker.told(seen[0])]
            return not complaints

        try:
            until("all is well", probe, timeout=HEALED_WITHIN, interval=0.3)
        except AssertionError as error:
            raise AssertionError("\n".join((str(error), *complaints))) from None
        return seen[0]


def _settled(found: Manifest) -> bool:
    return (
        bool(condition(found, "Progressing").get("reason") == "Settled")
        and found["status"]["observedGeneration"] == found["metadata"]["generation"]
    )


def _etcd(path: str, body: object) -> dict[str, Any]:
    """etcd's JSON gateway."""
    request = urllib.request.Request(f"{ETCD_URL}/v3/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found
