"""A changed spec on trial beside the revision that serves, on the real node."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, condition, until
from tests.support.served import Served, apply
from tests.support.traffic import traffic

CLIENTS = 4


@pytest.fixture(scope="module")
def pair(api: KubernetesApi, place: str, operator: Operator) -> Served:
    """Two replicas, one of which goes before its replacement starts."""
    del operator
    manifest = models.simulated_model(
        "trial",
        replicas=2,
        rollout={"strategy": "InPlace", "allowDowntime": True},
        runtime={"drainSeconds": 10, "podTemplate": models.QUICK_PROBES},
    )
    served = apply(api, place, manifest)
    served.wait_ready()
    return served


def test_a_sound_revision_is_promoted_with_its_pod_and_no_request_fails(pair: Served) -> None:
    """The trial is the first pod of the rollout, not an extra one that is thrown away."""
    before = current(pair)
    with traffic(pair.url(), pair.name, CLIENTS) as report:
        change(pair, seed="1")
        pair.wait("it is on trial", _reason("Progressing", "OnTrial"))
        until("its pod is there", lambda: _pods(pair, current(pair)))
        (pod,) = _pods(pair, current(pair))
        found = pair.wait_ready()

    assert report.failed == 0, report.failures
    assert current(pair) != before
    assert found["status"]["revisions"]["lastGood"] == current(pair)
    assert pod in _pods(pair, current(pair))
    pair.wait_told("Promoted")
    (told,) = pair.messages("Promoted")
    assert "new one with it in 6 of these" in told
    assert "It keeps up" in told


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        ({"crash": "HIP error: invalid device function"}, "KernelFault"),
        ({"slowdown": 2.0}, "TooSlow"),
    ],
    ids=["never starts", "slow"],
)
def test_a_bad_revision_is_rolled_back_by_itself_and_no_request_fails(
    pair: Served, world: dict[str, Any], reason: str
) -> None:
    """The change of a spec must not become an outage, nor a slower or another model."""
    before = current(pair)
    with traffic(pair.url(), pair.name, CLIENTS) as report:
        change(pair, world=world)
        found = pair.wait("it is rolled back", _reason("Progressing", reason), timeout=120)

    print("\n", condition(found, "Stalled")["message"])
    assert report.failed == 0, report.failures
    assert condition(found, "Stalled")["reason"] == reason
    assert condition(found, "Ready")["status"] == "True"
    assert found["status"]["revisions"] == {"current": before, "lastGood": before}
    assert len(_pods(pair, before)) == len(pair.pods()) == 2
    pair.wait_told("RolledBack")
    assert before in pair.messages("RolledBack")[-1]


def test_one_replica_is_compared_with_what_it_said_before_it_was_replaced(
    pair: Served,
) -> None:
    """There is no GPU for both, so the last good one comes back only after it was gone."""
    pair.change({"replicas": 1})
    until("one pod is left", lambda: len(pair.pods()) == 1)
    before = current(pair)

    change(pair, world={"speaker": "somebody else"})
    found = pair.wait("it is rolled back", _reason("Progressing", "OutputDiffers"), timeout=120)
    ready = pair.wait("the last good one serves", _reason("Ready", "Serving"))

    assert found["status"]["revisions"]["current"] == before
    assert len(_pods(pair, before)) == len(pair.pods()) == 1
    assert ready["status"]["readyReplicas"] == 1


def change(pair: Served, *, world: dict[str, Any] | None = None, seed: str = "0") -> None:
    """Another environment of the engine, so another revision."""
    env = {"SIMULATED_WORKLOAD": "gsm8k", "SIMULATED_SEED": seed}
    if world is not None:
        env["SIMULATED_WORLD"] = json.dumps(world)
    pair.change(
        {"runtime": {"env": [{"name": name, "value": value} for name, value in env.items()]}}
    )
    generation = pair.resource()["metadata"]["generation"]
    pair.wait(
        "the change was seen", lambda found: found["status"]["observedGeneration"] == generation
    )


def current(pair: Served) -> str:
    """The revision that should run."""
    return str(pair.status()["revisions"]["current"])


def _pods(pair: Served, key: str) -> set[str]:
    return {
        pod["metadata"]["uid"]
        for pod in pair.pods()
        if pod["metadata"]["labels"]["speculation.dev/revision"] == key
    }


def _reason(kind: str, reason: str) -> Callable[[Manifest], bool]:
    return lambda found: bool(condition(found, kind).get("reason") == reason)
