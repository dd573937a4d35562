"""What a real Prometheus has scraped of the operator and of engines: dashboards, alerts, and a
model that is tuned by it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
import yaml

from local import install
from local.simulated_engine.assembly import choose_group
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, condition, until
from tests.support.discovery import discovered
from tests.support.external_metrics import autoscaler, external_metric
from tests.support.helm import CHART
from tests.support.prometheus import Prometheus, as_documented, prometheus
from tests.support.served import Served, apply, settle
from tests.support.traffic import traffic

TARGET, METHOD, WORKLOAD = "Qwen/Qwen3-8B", "eagle3", "gsm8k"
CLIENTS = 4
SLOTS, CROWD, EACH = 8, 16, 11
"""Requests that one engine of the autoscaled model takes at once, clients, of whom half wait for
one replica, and requests in flight for each replica: two are wanted, of four. Engines are scraped
at different moments, so a request that ends here and a new one there may count twice or not."""
WINDOWS = 12
"""In which neither the autoscaler nor the tuner may go back and forth."""

OF_NOTHING = ("operator.json: Refused requests",)
"""Panels with 0 where nothing is wrong, of something that no test makes go wrong."""

ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((CHART / "rules" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]


@pytest.fixture(scope="module")
def scraped(
    api: KubernetesApi, place: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Prometheus, from before there is a model."""
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        discovered(api, folder, (install.NAMESPACE, place)) as discovery,
        prometheus(folder, as_documented(discovery)) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def loaded(
    api: KubernetesApi,
    place: str,
    operator: Operator,
    scraped: Prometheus,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Served]]:
    """The same model twice under the same load, read from its pod, and from Prometheus; and one
    whose requests in flight an autoscaler watches, under more load than one replica takes."""
    del operator
    sections: dict[str, dict[str, Any]] = {
        "pods": {"tuning": {"source": "Pods"}},
        "prometheus": {"tuning": {"source": "Prometheus"}},
        "queued": {"model": {"maxNumSeqs": SLOTS}},
    }
    found = {
        name: apply(
            api,
            place,
            models.simulated_model(
                name, target=TARGET, method=METHOD, workload=WORKLOAD, **changed
            ),
        )
        for name, changed in sections.items()
    }
    # Two with which something is wrong.
    waits = models.simulated_model("waits", accelerator={"count": 16}, parallelism={"tensor": 16})
    refused = models.simulated_model(
        "refused", runtime={"podTemplate": {"spec": {"hostNetwork": True}}}
    )
    for manifest in (waits, refused):
        apply(api, place, manifest)
    for model in found.values():
        model.wait_ready()

    def in_flight() -> int:
        requests = '__name__=~"vllm:num_requests_(running|waiting)"'
        of_model = f'{{{requests},namespace="{place}",model="queued"}}'
        # A scrape that came too late is no idle engine.
        return round(scraped.value(f"last_over_time({of_model}[30s])"))

    clients = {"pods": CLIENTS, "prometheus": CLIENTS, "queued": CROWD}
    with ExitStack() as running:
        folder = tmp_path_factory.mktemp("metric")
        running.enter_context(external_metric(api, place, folder, in_flight))
        for name, model in found.items():
            running.enter_context(traffic(model.url(), name, clients[name]))
        api.create(autoscaler("queued", EACH, up=5, down=20), place)
        yield found
        api.delete("HorizontalPodAutoscaler", place, "queued")


def test_what_prometheus_has_scraped_leads_to_a_length_as_good(
    loaded: dict[str, Served],
) -> None:
    """Two models under the same load. That one traffic leads to the same decisions is shown in
    virtual time."""
    group = choose_group(TARGET, METHOD, WORKLOAD)
    goodput = {arm.length: (1 + sum(arm.acceptance)) / arm.cost for arm in group.arms}
    near_best = {k for k, value in goodput.items() if value >= 0.97 * max(goodput.values())}

    found = {
        name: loaded[name].wait(
            f"K is one of {sorted(near_best)} and measured to be the best",
            lambda found: (
                found["status"].get("proposalLength") in near_best
                and condition(found, "Tuned").get("reason") == "BestMeasured"
            ),
            timeout=120,
        )["status"]["proposalLength"]
        for name in ("pods", "prometheus")
    }

    print(f"\n{found}, best within 3%: {sorted(near_best)}")


def test_the_autoscaler_and_the_tuner_do_not_chase_each_other(
    place: str, scraped: Prometheus, loaded: dict[str, Served]
) -> None:
    """One scales by the requests in flight, the other plays K by the batch: a replica more makes
    neither of them go back and forth."""
    model, series = loaded["queued"], f'{{namespace="{place}",name="queued"}}'
    model.wait(
        "there are two replicas, and the best K is known",
        lambda found: (
            found["status"]["readyReplicas"] == 2
            and condition(found, "Tuned").get("reason") == "BestMeasured"
        ),
        timeout=120,
    )
    settled = time.time()

    def since(function: str, metric: str) -> float:
        return scraped.value(
            f"{function}(speculative_operator_model_{metric}{series}[{time.time() - settled:.0f}s])"
        )

    # The age of evidence falls at the end of each window.
    until(
        f"{WINDOWS} windows have gone by",
        lambda: time.time() > settled + 2 and since("resets", "evidence_age_seconds") >= WINDOWS,
        timeout=90,
    )

    switches = since("increase", "switches_total")
    print(f"\n{switches:.1f} switches of K in {WINDOWS} windows, {time.time() - settled:.0f} s")
    wanted = f"speculative_operator_model_replicas_wanted{series}"
    assert scraped.value(f"changes({wanted}[10m])") == 1, "one to two, and not back"
    # Three lengths are within 1% of each other, and each batch size is decided by itself.
    assert switches <= WINDOWS / 3


def test_every_query_of_the_dashboards_returns_data(
    place: str, scraped: Prometheus, loaded: dict[str, Served]
) -> None:
    """A panel that is empty is worse than none: it looks as if nothing were wrong."""
    shown = {"$namespace": place, "$model": loaded["prometheus"].name, "$__rate_interval": "20s"}
    queries = {
        f"{path.name}: {panel['title']}": target["expr"]
        for path in sorted((CHART / "dashboards").glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    }

    for title, query in queries.items():
        for variable, value in shown.items():
            query = query.replace(variable, value)  # noqa: PLW2901 - built up
        if title not in OF_NOTHING:
            query = query.removesuffix(" or vector(0)")  # noqa: PLW2901 - which is always data
        until(f"{title}: {query}", partial(_data, scraped, query), timeout=60)


def test_every_alert_is_raised_by_what_it_tells_of(
    place: str, scraped: Prometheus, loaded: dict[str, Served]
) -> None:
    """Each in its state, on the series of the real operator; the time that it waits is promtool's
    business, and so is a schedule that no engine takes up, since the kubelet brings all of them."""
    loaded["pods"].world(acceptance=0.0)
    loaded["prometheus"].world(silent=True)
    raised = {
        "SpeculativeModelNoProgress": "refused",
        "SpeculativeModelSilent": loaded["prometheus"].name,
        "SpeculativeModelAcceptanceCollapsed": loaded["pods"].name,
        "SpeculativeModelWaitsForGpus": "waits",
    }

    elsewhere = {"SpeculativeOperatorNotLeading", "SpeculativeModelScheduleNotApplied"}
    assert {*raised, *elsewhere} == {rule["alert"] for rule in ALERTS}
    for rule in ALERTS:
        name, query = rule["alert"], rule["expr"]
        if name == "SpeculativeOperatorNotLeading":
            assert not scraped.query(query)
            assert scraped.query(query, at=scraped.started - 60), "there was no operator then"
        elif name in raised:
            until(
                f"{name} is raised for {raised[name]}",
                partial(_is_raised, scraped, query, (place, raised[name])),
                timeout=60,
            )
    loaded["pods"].world(acceptance=1.0)
    loaded["prometheus"].world(silent=False)


def test_an_outage_of_prometheus_changes_nothing_and_is_named(
    scraped: Prometheus, loaded: dict[str, Served]
) -> None:
    """No evidence is not zero. The last test: Prometheus stays away."""
    model = loaded["prometheus"]
    model.wait("it speculates again", lambda found: found["status"].get("mode") == "Speculative")
    scraped.stop()

    before = model.wait(
        "Tuned says that Prometheus is not to be reached",
        lambda found: condition(found, "Tuned").get("reason") == "MetricsUnreachable",
    )
    settle([model])
    found = model.resource()

    assert "/api/v1/query" in condition(found, "Tuned")["message"]
    assert found["status"]["schedule"] == before["status"]["schedule"]
    assert found["status"]["mode"] == "Speculative"


def _data(scraped: Prometheus, query: str) -> bool:
    """Whether there is a number."""
    return any(series["value"][1] not in ("NaN", "+Inf", "-Inf") for series in scraped.query(query))


def _is_raised(scraped: Prometheus, query: str, wanted: tuple[str, str]) -> bool:
    """For the model of this namespace and name."""
    found = (series["metric"] for series in scraped.query(query))
    return wanted in {(labels.get("namespace"), labels.get("name")) for labels in found}
