"""Engines at fault while they run, on the real node under load: told, and replaced one at a time.

An engine that hangs is in `test_start_failures_on_node`, since it takes a minute to be told.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

from speculative_operator.tuning.aging import HOUR, LEAST
from speculative_operator.tuning.memory import from_data
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, condition, until
from tests.support.served import Served, apply
from tests.support.traffic import traffic

CLIENTS = 8
REPLACES = {"replaceFaultyPods": "OneAtATime"}
COURSE = ((0.5, 1.0), (1.5, 0.9), (3.0, 0.8), (6.0, 0.7))
"""Hours since the start, and how often position i is accepted then, as a factor to the power i."""

CHEAP = {"name": "SIMULATED_WORLD", "value": '{"speculation_cost": 0.3}'}
"""Drafts pay at any acceptance, and so are made, by the pod's successor too."""


def start(api: KubernetesApi, place: str, name: str, **sections: Any) -> Served:
    """Two replicas, of which one at fault may be replaced."""
    model = apply(api, place, models.simulated_model(name, replicas=2, tuning=REPLACES, **sections))
    model.wait_ready()
    return model


def test_engines_whose_speculation_went_silent_are_replaced_one_at_a_time(
    api: KubernetesApi, place: str, operator: Operator
) -> None:
    """As after sleep and wake. The user's own budget is obeyed, and said to be in the way; and one
    more is not taken within the hour, since what comes back at once no restart mends."""
    del operator
    model = start(api, place, "silent", rollout={"disruptionBudget": False})
    uid = model.resource()["metadata"]["uid"]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "theirs"},
        "spec": {
            "minAvailable": 2,
            "selector": {"matchLabels": {"speculation.dev/model-uid": uid}},
        },
    }
    api.create(budget, place)
    before = set(map(_name, model.pods()))

    with traffic(model.url(), model.name, CLIENTS) as report:
        model.wait("it speculates", _speculates, timeout=60)
        for pod in model.pods():
            model.world(address=pod["status"]["podIP"], silent=True)
        silent = model.wait("the silence is told", _unhealthy("NoDrafts"), timeout=60)
        kept = model.wait("the budget is named", _says("is not replaced: "), timeout=60)
        during = set(map(_name, model.pods()))
        api.delete("PodDisruptionBudget", place, "theirs")
        until("one is replaced", lambda: len(before & set(map(_name, model.pods()))) == 1)
        model.wait_ready()
        (still,) = before & set(map(_name, model.pods()))
        named = model.wait("the other one is named", _says(still), timeout=60)

    assert "drafts" in condition(silent, "SpeculationHealthy")["message"]
    assert "disruption budget" in condition(kept, "SpeculationHealthy")["message"]
    assert during == before
    assert condition(named, "SpeculationHealthy")["status"] == "False"
    model.wait_told("PodNotReplaced", "PodReplaced")
    assert len(model.messages("PodReplaced")) == 1
    assert report.failed == 0, report.failures
    api.delete("SpeculativeModel", place, model.name)


def test_an_engine_whose_acceptance_falls_with_its_age_is_replaced(
    api: KubernetesApi, place: str, operator: Operator
) -> None:
    """The pages tell of earlier starts than there were. Its successor accepts as many as a fresh
    engine, so traffic is not the cause, and the condition says that."""
    del operator
    model = start(api, place, "ages", runtime={"env": [CHEAP]})
    before = set(map(_name, model.pods()))

    with traffic(model.url(), model.name, CLIENTS) as report:
        model.wait("it speculates", _speculates, timeout=60)
        for step, (hours, acceptance) in enumerate(COURSE):
            for pod in model.pods():
                address = pod["status"]["podIP"]
                model.world(address=address, age=hours * HOUR, acceptance=acceptance)
            if step < len(COURSE) - 1:
                until(
                    f"{hours} hours are known",
                    lambda step=step: _first_tokens(model)[step] >= LEAST,  # type: ignore[misc]
                    interval=1,
                )
        model.wait("the fall is told", _unhealthy("AcceptanceDecays"), timeout=60)
        until("one is replaced", lambda: len(before & set(map(_name, model.pods()))) == 1)
        model.wait_ready()
        proven = model.wait(
            "traffic is not the cause", _says("traffic is not the cause"), timeout=90
        )

    assert condition(proven, "SpeculationHealthy")["status"] == "False"
    assert len(model.messages("PodReplaced")) == 1
    assert report.failed == 0, report.failures
    api.delete("SpeculativeModel", place, model.name)


def _first_tokens(model: Served) -> list[float]:
    """First draft tokens by the age of engines, as they are saved. A look makes the operator save
    them now."""
    look = {"metadata": {"annotations": {"speculation.dev/look": str(time.time())}}}
    model.api.merge("SpeculativeModel", model.namespace, model.name, look)
    kept = model.api.get("ConfigMap", model.namespace, f"{model.name}-tuning") or {}
    binary = {name: base64.b64decode(data) for name, data in kept.get("binaryData", {}).items()}
    known = from_data(kept.get("data", {}), binary).revisions.values()
    return next(([age.drafted for age in state.aging.ages] for state in known), [0.0] * 6)


def _name(pod: Manifest) -> str:
    return str(pod["metadata"]["name"])


def _speculates(found: Manifest) -> bool:
    return condition(found, "SpeculationHealthy").get("reason") == "Healthy"


def _unhealthy(reason: str) -> Callable[[Manifest], bool]:
    return lambda found: condition(found, "SpeculationHealthy").get("reason") == reason


def _says(words: str) -> Callable[[Manifest], bool]:
    return lambda found: words in condition(found, "SpeculationHealthy").get("message", "")
