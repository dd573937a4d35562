"""Off speculation by a restart and back, on the real node, under load, with no failed request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from speculative_operator.api.names import ANNOTATION_LOOK
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, condition
from tests.support.served import Served, apply
from tests.support.traffic import traffic

CLIENTS, TOKENS = 96, 48
"""Many short requests: a pod that is to end has to wait for its last ones."""

DEAR, CHEAP = 3.0, 0.3
"""Factors on the cost of a step with drafts: with the first no K pays, with the second speculation
beats even engines without it, which the table alone does not have at this batch."""

WINDOWS = {"drafts": 50, "minSeconds": 2, "maxSeconds": 5}
"""Short, but long enough to time every K in trials."""

FALLBACK = {"level": "Restart", "sensor": True}


@pytest.fixture
def pair(api: KubernetesApi, place: str, operator: Operator) -> Served:
    """Two replicas that may be restarted off speculation."""
    del operator
    manifest = models.simulated_model(
        "fallback",
        replicas=2,
        rollout={"strategy": "Surge"},
        tuning={"fallback": FALLBACK, "trialSharePercent": 30, "window": WINDOWS},
        runtime={"drainSeconds": 10, "podTemplate": models.QUICK_PROBES},
    )
    served = apply(api, place, manifest)
    served.wait_ready()
    return served


def test_off_speculation_and_back_under_load_with_a_sensor(pair: Served) -> None:
    """It pays for the restart; a look that the user asks for, on the sensor, finds that it would
    not any more; and nobody who sends requests notices."""
    for pod in pair.pods():
        pair.world(address=pod["status"]["podIP"], speculation_cost=DEAR)
    speculative = pair.status()["revisions"]["current"]

    with traffic(pair.url(), pair.name, CLIENTS, TOKENS) as report:
        pair.wait("it is restarted", _mode("Autoregressive"), timeout=240)
        left = pair.wait("one sensor is left", _settled, timeout=120)
        (sensor,) = [pod for pod in pair.pods() if _revision(pod) == speculative]
        (plain,) = [pod for pod in pair.pods() if _revision(pod) != speculative]
        pair.world(address=sensor["status"]["podIP"], speculation_cost=CHEAP)
        _ask_for_a_look(pair)
        pair.wait("speculation is back", _mode("Speculative"), timeout=240)
        back = pair.wait("it is settled", _settled, timeout=120)

    changes = {change["reason"]: change for change in left["status"]["decisions"]}
    print("\n", report, changes["FellBackByRestart"], back["status"]["decisions"], sep="\n")
    assert report.failed == 0, report.failures
    assert "--speculative-config" not in _arguments(plain)
    assert left["status"]["proposalLength"] == 0
    assert left["status"]["revisions"]["current"] == _revision(plain)
    assert condition(left, "Tuned")["reason"] == "Autoregressive"
    assert back["status"]["revisions"]["current"] == speculative
    assert {_revision(pod) for pod in pair.pods()} == {speculative}
    pair.wait_told("FellBackByRestart", "SpeculationResumed")


@pytest.mark.long
def test_engines_without_the_plugin_leave_a_draft_that_brings_nothing(
    api: KubernetesApi, place: str, operator: Operator
) -> None:
    """By vLLM's own metrics and a restart alone, and the status says what is lost."""
    del operator
    world = {"page": "unmeasured", "acceptance": 0.02}
    manifest = models.simulated_model(
        "watched",
        rollout={"strategy": "Surge"},
        tuning={"fallback": {"level": "Restart"}, "window": WINDOWS},
        runtime={"drainSeconds": 10},
    )
    manifest["spec"]["runtime"]["env"].append(
        {"name": "SIMULATED_WORLD", "value": json.dumps(world)}
    )
    watched = apply(api, place, manifest)
    watched.wait_ready()

    with traffic(watched.url(), watched.name, CLIENTS // 4) as report:
        seen = watched.wait("it is watched", _tuned("NotTunable"), timeout=60)
        watched.wait("it is restarted", _mode("Autoregressive"), timeout=240)
        left = watched.wait("it is settled", _settled, timeout=120)
        watched.wait_measured("windows without speculation", lambda found: "goodput" in found)

    other = watched.status()["evidence"]["otherVariant"]
    print("", report, condition(seen, "Tuned"), left["status"]["decisions"], other, sep="\n")
    assert report.failed == 0, report.failures
    assert "what another would bring is not known" in condition(seen, "Tuned")["message"]
    assert "--speculative-config" not in _arguments(watched.pod())
    assert condition(left, "Tuned")["reason"] == "Autoregressive"
    assert other["speculative"]


def _tuned(reason: str) -> Callable[[Manifest], bool]:
    return lambda found: bool(condition(found, "Tuned").get("reason") == reason)


def _ask_for_a_look(pair: Served) -> None:
    asked = {"metadata": {"annotations": {ANNOTATION_LOOK: "now"}}}
    pair.api.merge("SpeculativeModel", pair.namespace, pair.name, asked)


def _mode(wanted: str) -> Callable[[Manifest], bool]:
    return lambda found: bool(found.get("status", {}).get("mode") == wanted)


def _settled(found: Manifest) -> bool:
    return bool(condition(found, "Progressing").get("reason") == "Settled")


def _revision(pod: Manifest) -> str:
    return str(pod["metadata"]["labels"]["speculation.dev/revision"])


def _arguments(pod: Manifest) -> list[Any]:
    found: list[Any] = pod["spec"]["containers"][0]["args"]
    return found
