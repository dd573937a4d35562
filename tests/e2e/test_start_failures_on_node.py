"""Engines that end before they serve, on the real kubelet: its statuses, back-offs and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.load import LoadReport
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, condition, is_true, until
from tests.support.endings import words
from tests.support.served import Served, apply
from tests.support.traffic import traffic

GIVEN_UP = {
    "mtp-length": "ConfigurationRefused",
    "kv-cache": "OutOfGpuMemory",
    "missing-draft": "ModelUnavailable",
    "hidden-size": "DraftDoesNotFit",
}
"""Ends that no further start can mend, if nothing may stand in."""

TRIED_AGAIN = {"hub-unreachable": "ModelUnavailable", "no-gpu": "DeviceFault"}


@dataclass(frozen=True)
class Hanging:
    """A model of which one pod hangs under load; `report` is of the other one."""

    model: Served
    pod: str
    sound: str
    report: LoadReport


@pytest.fixture(scope="module", autouse=True)
def hanging(api: KubernetesApi, place: str, operator: Operator) -> Iterator[Hanging]:
    """From before the other tests on: a hang takes a minute to be told."""
    del operator
    model = apply(api, place, models.simulated_model("hangs", replicas=2))
    model.wait_ready()
    hung, sound = model.pods()
    with (
        traffic(_at(hung), model.name, 2, abandoned=True) as first,
        traffic(_at(sound), model.name, 2) as report,
    ):
        until("both have worked", lambda: first.finished and report.finished, timeout=30)
        model.world(address=hung["status"]["podIP"], hung=True)
        yield Hanging(model, _name(hung), _name(sound), report)


def start(
    api: KubernetesApi, place: str, name: str, end: str, *, part: str = "", **sections: Any
) -> Served:
    """A model whose engine ends so, if it is started with this `part` of speculation."""
    env = [{"name": "SIMULATED_END", "value": words(end)}]
    env += [{"name": "SIMULATED_END_IF", "value": part}] if part else []
    return apply(api, place, models.simulated_model(name, runtime={"env": env}, **sections))


def test_every_end_is_told_by_its_class_and_holds_a_gpu_only_while_it_may_pass(
    api: KubernetesApi, place: str, operator: Operator
) -> None:
    """From the pod's status alone: nobody reads a log."""
    del operator
    fail = {"fallback": {"onStartFailure": "Fail"}}
    ends = {**GIVEN_UP, **TRIED_AGAIN}
    started = {name: start(api, place, name, name, tuning=fail) for name in ends}

    for name, reason in ends.items():
        started[name].wait(f"{name} is told", _not_ready_for(reason), timeout=90)
    for name in GIVEN_UP:
        found = started[name].wait("it is given up", _stalled, timeout=90)
        assert "No pods are started" in condition(found, "Stalled")["message"]
        until("its GPU is free", _no_pods(started[name]), timeout=30)
        started[name].wait_told("StartFailed")
    for name in TRIED_AGAIN:
        assert not is_true(started[name].resource(), "Stalled")
        assert started[name].pods()
    for model in started.values():
        api.delete("SpeculativeModel", place, model.name)


@dataclass(frozen=True)
class StandIn:
    """An end, the part of speculation without which it does not come, and what is told then."""

    end: str
    part: str
    reason: str
    mode: str
    left_out: str


@pytest.mark.parametrize(
    "case",
    [
        StandIn(
            "vocabulary", "speculation", "SpeculationFails", "Autoregressive",
            "--speculative-config",
        ),
        StandIn(
            "no-attention-backend", "attention_backend", "Reduced", "Speculative",
            "attention_backend",
        ),
    ],
    ids=lambda case: case.reason,
)  # fmt: skip
def test_speculation_that_does_not_start_is_done_without_and_told(
    api: KubernetesApi, place: str, operator: Operator, case: StandIn
) -> None:
    """Requests are answered; the spec as written is tried again only when it changes."""
    del operator
    options = {"attentionBackend": "TRITON_ATTN"}
    name = case.reason.lower()
    model = start(api, place, name, case.end, part=case.part, speculation={"options": options})

    found = model.wait("it serves all the same", lambda found: is_true(found, "Ready"), timeout=60)
    healthy = condition(found, "SpeculationHealthy")
    assert (healthy["status"], healthy["reason"]) == ("False", case.reason)
    assert found["status"]["mode"] == case.mode
    assert is_true(found, "Stalled")
    assert model.complete("the quick brown fox", tokens=8)
    assert case.left_out not in str(model.pod()["spec"]["containers"][0]["args"])

    stand_in = model.pod()["metadata"]["uid"]
    model.change({"speculation": {"options": None}, "runtime": {"env": None}})
    model.wait("the mended spec runs", _as_asked, timeout=90)
    assert model.pod()["metadata"]["uid"] != stand_in
    api.delete("SpeculativeModel", place, model.name)


def test_an_engine_that_hangs_is_told_and_replaced_where_that_is_allowed(hanging: Hanging) -> None:
    """Its probes succeed, so the kubelet does nothing; the other replica serves on."""
    model, hung = hanging.model, hanging.pod
    found = model.wait("the hang is told", _not_ready_for("EngineHangs"), timeout=100)
    assert hung in condition(found, "Ready")["message"]
    model.wait_told("EngineHangs")
    assert hung in map(_name, model.pods())

    model.change({"tuning": {"replaceFaultyPods": "OneAtATime"}})
    until("it is replaced", lambda: hung not in map(_name, model.pods()), timeout=60)
    model.wait_ready()

    assert hanging.sound in map(_name, model.pods())
    model.wait_told("PodReplaced")
    assert hanging.report.failed == 0, hanging.report.failures


def _at(pod: Manifest) -> str:
    return f"http://{pod['status']['podIP']}:8000"


def _name(pod: Manifest) -> str:
    return str(pod["metadata"]["name"])


def _no_pods(model: Served) -> Callable[[], bool]:
    return lambda: not model.pods()


def _not_ready_for(reason: str) -> Callable[[Manifest], bool]:
    return lambda found: condition(found, "Ready").get("reason") == reason


def _stalled(found: Manifest) -> bool:
    return is_true(found, "Stalled")


def _as_asked(found: Manifest) -> bool:
    reasons = ("Reduced", "SpeculationFails")
    return (
        is_true(found, "Ready")
        and not is_true(found, "Stalled")
        and not is_true(found, "Progressing")
        and condition(found, "SpeculationHealthy").get("reason") not in reasons
    )
