"""Rollouts with a real kubelet: no pod waits for a GPU that another one still holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, condition, is_true, until
from tests.support.gpus import offer, restored
from tests.support.rollouts import key, roll
from tests.support.served import Served, apply
from tests.support.traffic import traffic

REPLICAS = 2
CLIENTS = 4


@pytest.fixture(autouse=True)
def all_devices() -> Iterator[None]:
    """Each test offers as many GPUs as it is about; afterwards there are all again."""
    with restored():
        yield


@pytest.fixture(scope="module")
def pair(api: KubernetesApi, place: str, operator: Operator) -> Served:
    """Two replicas of a simulated engine, one GPU each."""
    del operator
    runtime = {"podTemplate": models.QUICK_PROBES}
    served = apply(api, place, models.simulated_model("pair", replicas=REPLICAS, runtime=runtime))
    served.wait_ready()
    return served


def test_in_place_needs_no_spare_gpu(api: KubernetesApi, pair: Served) -> None:
    """With every GPU taken a rollout must free one first, and never more than one."""
    offer(api, REPLICAS)
    before = {key(pod) for pod in pair.pods()}

    seen = roll(pair, {"model": {"maxNumSeqs": 48}, "rollout": {"strategy": "InPlace"}})

    assert seen.most_pods <= REPLICAS
    assert seen.least_ready >= REPLICAS - 1
    assert before.isdisjoint({key(pod) for pod in pair.pods()})


def test_surge_with_one_spare_gpu_loses_no_request_though_the_spec_changes_midway(
    api: KubernetesApi, pair: Served
) -> None:
    """One more pod first, then one of the old ones goes; what nobody wants is not waited for."""
    offer(api, REPLICAS + 1)

    with traffic(pair.url(), pair.name, CLIENTS) as report:
        pair.change({"model": {"maxNumSeqs": 40}, "rollout": {"strategy": "Surge"}})
        middle = pair.wait(
            "the first rollout has begun",
            lambda found: condition(found, "Progressing").get("reason") == "OnTrial",
        )["status"]["revisions"]["current"]
        seen = roll(pair, {"model": {"maxNumSeqs": 32}})

    assert report.finished > 0
    assert report.failed == 0, report.failures
    assert seen.most_pods <= REPLICAS + 1
    assert seen.least_ready >= REPLICAS
    newest = pair.status()["revisions"]["current"]
    assert newest != middle
    assert {key(pod) for pod in pair.pods()} == {newest}


def test_scale_of_the_model_changes_its_pods(api: KubernetesApi, pair: Served) -> None:
    """`/scale` is the only thing that an autoscaler targets."""
    path = api.path("SpeculativeModel", pair.namespace, pair.name)
    api.call("PATCH", f"{path}/scale", {"spec": {"replicas": 1}}, "application/merge-patch+json")

    until("one pod is left", lambda: len(pair.pods()) == 1, timeout=60)
    found = pair.wait("status tells of one", lambda model: model["status"]["replicas"] == 1)

    assert is_true(found, "Ready")


def test_a_service_of_somebody_else_is_left_alone(api: KubernetesApi, pair: Served) -> None:
    """A taken name is refused in words, and no GPU is taken for a model without its Service."""
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "taken"},
        "spec": {"ports": [{"port": 81}], "selector": {"app": "theirs"}},
    }
    theirs = api.create(foreign, pair.namespace)
    model = apply(api, pair.namespace, models.simulated_model("taken"))

    found = model.wait(
        "the conflict is told",
        lambda resource: condition(resource, "Accepted").get("reason") == "NameConflict",
    )

    assert "taken" in condition(found, "Accepted")["message"]
    assert api.get("Service", pair.namespace, "taken") == theirs
    assert model.pods() == []
