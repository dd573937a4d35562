"""What the operator sends when there is nothing to do: nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from local import audit, devices, install
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, until
from tests.support.served import Served, apply, settle

pytestmark = pytest.mark.timeout(420)

MODELS = 20
QUIET_SECONDS = 60
USER = f"system:serviceaccount:{install.NAMESPACE}:speculative-operator"
NOT_COUNTED = {"leases", "events"}


@pytest.fixture(scope="module")
def resting(api: KubernetesApi, place: str, operator: Operator) -> Iterator[list[Served]]:
    """Twenty Ready models without traffic."""
    del operator
    devices.set_count(MODELS + 2)
    served = [
        apply(api, place, models.simulated_model(f"resting-{number:02}"))
        for number in range(MODELS)
    ]
    for model in served:
        model.wait_ready(timeout=300)
    yield served
    devices.set_count(devices.DEFAULT_COUNT)


@pytest.fixture(scope="module")
def restarted(resting: list[Served], operator: Operator) -> datetime:
    """When the operator was told to end; by now a new one has looked at every model."""
    settle(resting)
    since = datetime.now(UTC)
    operator.restart()
    until("every model was looked at", lambda: operator.passes() >= MODELS)
    return since


def test_a_restart_of_the_operator_costs_no_write(restarted: datetime) -> None:
    """A new operator finds all as it should be."""
    assert _writes(restarted) == {}


def test_twenty_idle_models_cost_no_write(restarted: datetime) -> None:
    """An idle operator that writes is a fight with somebody, or a clock in a status."""
    time.sleep(max(0.0, QUIET_SECONDS - (datetime.now(UTC) - restarted).total_seconds()))

    assert _writes(restarted) == {}


def test_a_deleted_child_comes_back_by_its_event_with_one_write(resting: list[Served]) -> None:
    """Long before any resync; a second write would be a reconcile that fights itself."""
    model = resting[0]
    settle(resting)
    service = model.api.get("Service", model.namespace, model.name)
    assert service is not None
    since = datetime.now(UTC)

    model.api.delete("Service", model.namespace, model.name)
    until(
        "the Service is back",
        lambda: (
            (model.api.get("Service", model.namespace, model.name) or service)["metadata"]["uid"]
            != service["metadata"]["uid"]
        ),
        timeout=20,
    )
    time.sleep(3)

    assert _writes(since) == {("create", "services"): 1}


def test_an_edited_child_is_restored_by_its_event_with_one_write(resting: list[Served]) -> None:
    """What we render is ours; labels of others stay."""
    model = resting[1]
    settle(resting)
    since = datetime.now(UTC)

    model.api.merge(
        "Service",
        model.namespace,
        model.name,
        {
            "metadata": {"labels": {"mine": "yes"}},
            "spec": {"selector": {"speculation.dev/serving": "wrong"}},
        },
    )
    restored = model.api.wait(
        "Service",
        model.namespace,
        model.name,
        lambda found: found["spec"]["selector"]["speculation.dev/serving"] == "true",
        what="the selector is ours again",
        timeout=20,
    )
    time.sleep(3)

    assert restored["metadata"]["labels"]["mine"] == "yes"
    assert _writes(since) == {("patch", "services"): 1}


def _writes(since: datetime) -> dict[tuple[str, str], int]:
    """The operator's writes, by verb and resource; Lease and Events apart."""
    return dict(
        Counter(
            (request.verb, request.resource)
            for request in audit.requests(since)
            if request.user == USER and request.writes and request.resource not in NOT_COUNTED
        )
    )
