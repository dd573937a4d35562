"""The real KEDA on a SpeculativeModel, with the manifests of the docs and a real Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from local import install
from local.addresses import NODE_ADDRESS
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, is_true, until
from tests.support.discovery import discovered
from tests.support.doc_manifests import written
from tests.support.keda import keda
from tests.support.prometheus import ADDRESS, Prometheus, as_documented, prometheus
from tests.support.served import Served, apply
from tests.support.traffic import traffic

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

NAME = "qwen"
"""As in the docs."""
SLOTS = 8
FEW, CROWD = 2, 8
"""Clients that one replica is enough for, and that come besides. With four requests in flight for
each replica there are three wanted for all of them."""
WINDOWS = 12
"""In which the number of replicas may not go back and forth."""


class Gateway:
    """What stands in front of a parked model: it tells how many requests it holds."""

    def __init__(self) -> None:
        self.waiting = 0


@pytest.fixture(scope="module")
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture(scope="module")
def scraped(
    api: KubernetesApi,
    place: str,
    operator: Operator,
    gateway: Gateway,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """Prometheus over the operator, the engines and the gateway, and KEDA."""
    del operator
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        _served(gateway) as port,
        discovered(api, folder, (install.NAMESPACE, place)) as discovery,
        prometheus(folder, _and_gateway(discovery, port)) as running,
        keda(api, tmp_path_factory.mktemp("keda")),
    ):
        yield running


@pytest.fixture(scope="module")
def model(api: KubernetesApi, place: str, scraped: Prometheus) -> Served:
    """One replica that takes eight requests at once."""
    del scraped
    served = apply(api, place, models.simulated_model(NAME, model={"maxNumSeqs": SLOTS}))
    served.wait_ready()
    return served


def test_it_scales_the_model_by_its_requests_in_flight_and_none_is_lost(
    api: KubernetesApi, place: str, scraped: Prometheus, model: Served
) -> None:
    """Up under load and back, each once, by KEDA's own rights."""
    (documented,) = [found for found in _documented() if found["spec"]["minReplicaCount"] == 1]
    with (
        traffic(model.url(), NAME, FEW) as steady,
        _applied(api, place, documented),
    ):
        with traffic(model.url(), NAME, CROWD) as crowd:
            _wait_for(model, 3)
            settled = time.time()
            until(f"{WINDOWS} windows have gone by", lambda: _windows(scraped, place, settled))
            assert model.resource()["spec"]["replicas"] == 3
        _wait_for(model, 1)

    changes = f'changes(speculative_operator_model_replicas_wanted{{namespace="{place}"}}[10m])'
    changed = scraped.value(changes)
    print(f"\n{changed:.0f} changes of replicas\nsteady: {steady}\ncrowd: {crowd}")
    assert changed <= 4, "up in one step or two, and down so"
    assert (steady.failed, crowd.failed) == (0, 0)
    assert steady.finished == steady.sent
    assert crowd.finished == crowd.sent


def test_it_parks_an_idle_model_and_what_its_gateway_holds_wakes_it(
    api: KubernetesApi, place: str, gateway: Gateway, model: Served
) -> None:
    """A parked model has no numbers of its own, and is nevertheless not lost."""
    (documented,) = [found for found in _documented() if found["spec"]["minReplicaCount"] == 0]
    with _applied(api, place, documented):
        model.wait("it is parked", lambda found: found["spec"]["replicas"] == 0, timeout=120)
        until("there is no pod", lambda: not model.pods())
        until("KEDA finds nothing wrong", lambda: _is_ready(api, place))

        gateway.waiting = 1
        _wait_for(model, 1)
        assert model.complete("Once upon a time")


def _windows(scraped: Prometheus, place: str, since: float) -> bool:
    """Whether so many have closed: the age of evidence falls at the end of each."""
    age = f'speculative_operator_model_evidence_age_seconds{{namespace="{place}"}}'
    return scraped.value(f"resets({age}[{time.time() - since + 1:.0f}s])") >= WINDOWS


def _documented() -> Iterator[Manifest]:
    """The docs' ScaledObjects, for this Prometheus and with the patience of a test."""
    for found in written():
        if found.manifest["kind"] == "ScaledObject":
            yield deepcopy(found.manifest)


@contextmanager
def _applied(api: KubernetesApi, place: str, documented: Manifest) -> Iterator[None]:
    """KEDA has the manifest while the body runs, with the numbers of a test in it."""
    spec = documented["spec"]
    for trigger in spec["triggers"]:
        told = trigger["metadata"]
        told["serverAddress"] = f"http://{ADDRESS}"
        told["query"] = told["query"].replace('namespace="default"', f'namespace="{place}"')
        told["threshold"] = str(SLOTS // 2)
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    behavior["scaleUp"]["stabilizationWindowSeconds"] = 6
    behavior["scaleDown"]["stabilizationWindowSeconds"] = 20
    spec |= {"pollingInterval": 1, "cooldownPeriod": 5}
    api.create(documented, place)
    try:
        yield
    finally:
        api.delete("ScaledObject", place, NAME)
        until("KEDA has let go", lambda: api.get("ScaledObject", place, NAME) is None)


def _is_ready(api: KubernetesApi, place: str) -> bool:
    found = api.get("ScaledObject", place, NAME)
    assert found is not None
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in found.get("status", {}).get("conditions", ())
    )


def _wait_for(model: Served, replicas: int) -> None:
    """Asked for by KEDA's autoscaler or itself, and running."""
    model.wait(
        f"KEDA asks for {replicas}",
        lambda found: found["spec"]["replicas"] == replicas and is_true(found, "Ready"),
        timeout=120,
    )
    model.wait_ready()
    until(f"there are {replicas} pods", lambda: len(model.pods()) == replicas)


def _and_gateway(discovery: list[dict[str, object]], port: int) -> dict[str, object]:
    """The documented configuration and one job more."""
    configuration = as_documented(discovery)
    job = {
        "job_name": "gateway",
        "scrape_interval": "1s",
        "static_configs": [{"targets": [f"{NODE_ADDRESS}:{port}"]}],
    }
    return {**configuration, "scrape_configs": [*configuration["scrape_configs"], job]}


@contextmanager
def _served(gateway: Gateway) -> Iterator[int]:
    """Its metrics, at a port of the node."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(
                f'gateway_requests_waiting{{model="{NAME}"}} {gateway.waiting}\n'.encode()
            )

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer((NODE_ADDRESS, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
