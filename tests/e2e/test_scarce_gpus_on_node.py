"""GPUs are scarce: what a rollout does then, what status says, and that no request notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local import devices, install
from tests.e2e.conftest import Operator
from tests.support import models, quotas
from tests.support.api import KubernetesApi, Manifest, condition, is_true, until
from tests.support.gpus import offer, restored, wait_offered
from tests.support.quotas import obeyed_quota
from tests.support.rollouts import key, roll
from tests.support.served import Served, apply, settle
from tests.support.traffic import traffic

REPLICAS = 2
CLIENTS = 4
UNTRIED = {"trial": {"mode": "Off"}}
SOON = {"surgeTimeoutSeconds": 2, **UNTRIED}
NEVER = {"surgeTimeoutSeconds": 3600, **UNTRIED}


@pytest.fixture(autouse=True)
def all_devices() -> Iterator[None]:
    """Each test offers as many GPUs as it is about; afterwards there are all again."""
    with restored():
        yield


@pytest.fixture(scope="module")
def scarce(api: KubernetesApi, place: str, operator: Operator) -> Served:
    """Two replicas of a simulated engine, one GPU each, rolled out by the default strategy."""
    del operator
    served = apply(api, place, models.simulated_model("scarce", replicas=REPLICAS, rollout=SOON))
    served.wait_ready()
    return served


def test_auto_without_a_spare_gpu_goes_in_place_and_loses_no_request(
    api: KubernetesApi, scarce: Served
) -> None:
    """One pod more is tried, taken back, and then one pod is replaced after the other."""
    offer(api, REPLICAS)

    with traffic(scarce.url(), scarce.name, CLIENTS) as report:
        seen = roll(scarce, {"model": {"maxNumSeqs": 48}})

    assert report.finished > 0
    assert report.failed == 0, report.failures
    assert seen.most_pods <= REPLICAS + 1
    assert seen.least_ready >= REPLICAS - 1
    scarce.wait_told("RolloutInPlace")


def test_a_quota_that_refuses_one_pod_more_is_gone_round(
    api: KubernetesApi, scarce: Served
) -> None:
    """GPUs are free, and the namespace may not have them."""
    obeyed_quota(api, scarce.namespace, {"requests.amd.com/gpu": str(REPLICAS)})

    seen = roll(scarce, {"model": {"maxNumSeqs": 44}})

    assert seen.most_pods <= REPLICAS
    assert seen.least_ready >= REPLICAS - 1
    api.delete("ResourceQuota", scarce.namespace, quotas.NAME)


def test_pods_that_wait_say_for_what_and_a_faulty_device_ends_no_engine(
    api: KubernetesApi, scarce: Served
) -> None:
    """Engines keep the device that they have; a new pod waits, and comes by itself."""
    offer(api, REPLICAS + 1)
    serving = {pod["metadata"]["uid"] for pod in scarce.pods()}
    devices.mark_unhealthy(f"gpu-{REPLICAS}")
    wait_offered(api, REPLICAS)

    scarce.change({"replicas": REPLICAS + 1})
    found = scarce.wait(
        "it waits for GPUs",
        lambda model: condition(model, "Ready").get("reason") == "WaitingForGpus",
    )
    assert "waits for 1 amd.com/gpu" in condition(found, "Ready")["message"]
    assert "Insufficient amd.com/gpu" in condition(found, "Ready")["message"]
    assert found["status"]["readyReplicas"] == REPLICAS

    devices.mark_healthy()
    scarce.wait_ready()
    assert serving < {pod["metadata"]["uid"] for pod in scarce.pods()}
    scarce.change({"replicas": REPLICAS})
    scarce.wait_ready()


def test_a_device_that_turned_unhealthy_is_named_and_left_once_its_engine_ends(
    api: KubernetesApi, scarce: Served
) -> None:
    """The kubelet would start the engine on the same device for ever."""
    offer(api, devices.DEFAULT_COUNT)
    pod = scarce.pods()[0]
    name, device = pod["metadata"]["name"], _device(pod)
    devices.mark_unhealthy(device)

    found = scarce.wait(
        "it is named",
        lambda model: (
            f"unhealthy on node {pod['spec']['nodeName']}: amd.com/gpu {device}"
            in condition(model, "Ready").get("message", "")
        ),
    )
    scarce.world(address=pod["status"]["podIP"], crash="HSA_STATUS_ERROR_EXCEPTION")
    until("its pod has gone", lambda: name not in {p["metadata"]["name"] for p in scarce.pods()})
    scarce.wait_ready()

    assert is_true(found, "Ready")
    assert f"Pod {name} runs on" in condition(found, "Ready")["message"]
    assert device not in map(_device, scarce.pods())
    scarce.wait_told("PodReplaced")
    assert any(device in words for words in scarce.messages("PodReplaced"))


def _device(pod: Manifest) -> str:
    """The one that its engine was given, as the kubelet tells it."""
    (engine,) = pod["status"]["containerStatuses"]
    (resource,) = engine["allocatedResourcesStatus"]
    (device,) = resource["resources"]
    return str(device["resourceID"])


def test_a_product_that_no_node_has_is_told_from_a_full_cluster(
    api: KubernetesApi, scarce: Served
) -> None:
    """To wait for it would be for ever."""
    other = models.simulated_model("other", accelerator={"products": ["MI355X"]})
    model = apply(api, scarce.namespace, other)

    found = model.wait(
        "it says so", lambda it: condition(it, "Ready").get("reason") == "NoNodeFits"
    )

    assert "node affinity/selector" in condition(found, "Ready")["message"]
    api.delete("SpeculativeModel", scarce.namespace, "other")


def test_one_replica_serves_on_until_a_gpu_is_free(api: KubernetesApi, scarce: Served) -> None:
    """A change makes no outage; the message names the field that would allow one."""
    scarce.change({"replicas": 1})
    scarce.wait_ready()
    until("one pod is left", lambda: len(scarce.pods()) == 1)
    offer(api, 1)

    with traffic(scarce.url(), scarce.name, CLIENTS) as report:
        scarce.change({"model": {"maxNumSeqs": 40}})
        found = scarce.wait(
            "it says what it may not do",
            lambda model: condition(model, "Progressing").get("reason") == "DowntimeNotAllowed",
        )
        offer(api, 2)
        scarce.wait(
            "the rollout has ended",
            lambda model: condition(model, "Progressing").get("reason") == "Settled",
        )

    assert "rollout.allowDowntime: true" in condition(found, "Progressing")["message"]
    assert is_true(found, "Ready")
    assert is_true(found, "Stalled")
    assert report.failed == 0, report.failures
    assert key(scarce.pod()) == scarce.status()["revisions"]["current"]


def test_a_model_that_is_parked_comes_back_with_what_it_has_learned(
    api: KubernetesApi, scarce: Served
) -> None:
    """`replicas: 0` frees the GPUs; schedule, record and memory stay."""
    current = scarce.status()["revisions"]["current"]

    def learned() -> dict[str, Any]:
        memory = api.get("ConfigMap", scarce.namespace, f"{scarce.name}-tuning")
        assert memory is not None
        states: dict[str, dict[str, Any]] = json.loads(memory["data"]["state.json"])["revisions"]
        return states.get(current, {})

    with traffic(scarce.url(), scarce.name, CLIENTS):
        # Without a decision it is saved after 75 s at most.
        until("something was learned", lambda: learned().get("windows", 0) > 0, timeout=150)
    scarce.change({"replicas": 0})
    until("no pod is left", lambda: not scarce.pods())
    settle([scarce])  # the last window may have been decided on
    parked, schedule = learned(), scarce.schedule()
    scarce.change({"replicas": 1})
    scarce.wait_ready()

    assert parked["windows"] > 0
    assert learned()["windows"] >= parked["windows"]
    assert scarce.status()["revisions"]["current"] == current
    assert scarce.schedule() == schedule


def test_where_gpus_are_counted_no_attempt_is_made_and_the_closest_node_is_named(
    api: KubernetesApi, scarce: Served
) -> None:
    """By the chart's `rbac.capacity`; the default has no right to look."""
    install.install({"rbac": {"capacity": True}})
    try:
        scarce.change({"replicas": REPLICAS, "rollout": NEVER})
        scarce.wait_ready()
        offer(api, REPLICAS)

        seen = roll(scarce, {"model": {"maxNumSeqs": 36}})
        scarce.change({"replicas": REPLICAS + 1})
        found = scarce.wait(
            "the closest node is named",
            lambda model: "Closest: " in condition(model, "Ready").get("message", ""),
        )
    finally:
        install.install()

    assert seen.most_pods <= REPLICAS
    assert condition(found, "Ready")["reason"] == "WaitingForGpus"
    assert f"has 0 of {REPLICAS} free" in condition(found, "Ready")["message"]
