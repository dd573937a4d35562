"""How a spec change reaches the pods: one at a time, and never at the price of what serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from speculative_operator.api.names import ANNOTATION_VERDICT, LABEL_REVISION, LABEL_SERVING
from tests.support.api import Manifest, until
from tests.support.nodeless import Engine, Place, engine, make_ready

LONGER = {"model": {"source": "hf://Qwen/Qwen3-8B", "maxModelLen": 4096}}
EVEN_LONGER = {"model": {"source": "hf://Qwen/Qwen3-8B", "maxModelLen": 8192}}


@pytest.fixture
def running(qwen: Place) -> Iterator[Engine]:
    """An engine that stands in for all pods of the model."""
    with engine(qwen.name) as made:
        yield made


def start(qwen: Place, running: Engine, replicas: int, strategy: str) -> str:
    """A model that serves with so many pods; the key of its revision."""
    qwen.create(replicas=replicas, rollout={"strategy": strategy})
    for pod in qwen.pods(replicas):
        make_ready(qwen.api, pod, running.address)
    qwen.wait("Ready", "True")
    return qwen.current()


def label(pod: Manifest) -> str:
    """Whether the Service sends it requests."""
    return str(pod["metadata"]["labels"][LABEL_SERVING])


def finish(qwen: Place, running: Engine, key: str, replicas: int) -> None:
    """Makes each pod of a revision Ready as it comes, until there is no other."""

    def step() -> bool | None:
        pods = qwen.alive()
        for pod in pods:
            conditions = pod.get("status", {}).get("conditions", [])
            if not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
                make_ready(qwen.api, pod, running.address)
        done = [pod for pod in pods if pod["metadata"]["labels"][LABEL_REVISION] == key]
        return len(done) == len(pods) == replicas or None

    until(f"only pods of {key}", step)


def test_in_place_one_pod_goes_before_its_replacement_comes(qwen: Place, running: Engine) -> None:
    """There may be no spare GPU; and a replacement that never gets ready takes no more pods."""
    old = start(qwen, running, 3, "InPlace")
    qwen.edit(**LONGER)
    new = qwen.current()

    qwen.pods(1, new)

    assert len(qwen.pods(2, old)) == 2
    assert new != old


def test_a_surge_starts_one_more_pod_first(qwen: Place, running: Engine) -> None:
    """Where a GPU is spare nothing has to go missing."""
    old = start(qwen, running, 2, "Surge")
    qwen.edit(**LONGER)

    qwen.pods(1, qwen.current())

    assert len(qwen.alive(old)) == 2


def test_a_rollout_ends_with_the_new_revision_alone(qwen: Place, running: Engine) -> None:
    """Nothing of the old one is left, not even its records, and the Service never lost its pods."""
    old = start(qwen, running, 2, "InPlace")
    qwen.edit(**LONGER)
    new = qwen.current()

    finish(qwen, running, new, 2)
    qwen.wait("Ready", "True")
    qwen.wait("Progressing", "False", "Settled")

    until("the old one's objects are gone", lambda: not _of(qwen, old) or None)
    assert {label(pod) for pod in qwen.alive()} == {"true"}
    assert qwen.read()["status"]["revisions"] == {"current": new, "lastGood": new}


def _of(qwen: Place, key: str) -> list[tuple[str, str]]:
    return [name for name in qwen.children() if key in name[1]]


def test_a_pod_on_trial_serves_only_once_it_was_checked(qwen: Place, running: Engine) -> None:
    """Readiness says that it is up, not that it serves the model."""
    start(qwen, running, 1, "Surge")
    qwen.edit(**LONGER)
    new = qwen.current()
    (pod,) = qwen.pods(1, new)
    until("it is off the Service", lambda: label(qwen.pods(1, new)[0]) == "false" or None)
    running.names = ()
    make_ready(qwen.api, pod, running.address)
    qwen.wait("Progressing", "True", "RollingOut")

    assert label(qwen.pods(1, new)[0]) == "false"

    running.names = (qwen.name,)
    until("it serves", lambda: [label(p) for p in qwen.alive(new)] == ["true"] or None)
    record = qwen.api.get("ControllerRevision", qwen.namespace, f"{qwen.name}-{new}")
    assert record is not None
    assert record["metadata"]["annotations"][ANNOTATION_VERDICT] == "good"


def test_a_newer_spec_supersedes_an_unfinished_rollout(qwen: Place, running: Engine) -> None:
    """The pods that serve stay; those of the revision that nobody wants any more go at once."""
    first = start(qwen, running, 2, "InPlace")
    qwen.edit(**LONGER)
    second = qwen.current()
    qwen.pods(1, second)
    qwen.edit(**EVEN_LONGER)
    third = qwen.current()

    qwen.pods(1, third)
    told = qwen.wait("Progressing", "True", "RollingOut")["message"]

    assert len(qwen.pods(0, second)) == 0
    assert len(qwen.pods(1, first)) == 1
    assert third in told
    finish(qwen, running, third, 2)
    qwen.wait("Ready", "True")
    qwen.wait("Progressing", "False", "Settled")
    assert qwen.read()["status"]["revisions"] == {"current": third, "lastGood": third}


def test_a_refused_spec_leaves_what_serves(qwen: Place, running: Engine) -> None:
    """The user reads why, and the pods of before go on, cared for as ever."""
    old = start(qwen, running, 1, "InPlace")
    qwen.edit(runtime={"podTemplate": {"spec": {"hostNetwork": True}}})

    refused = qwen.wait("Accepted", "False", "Invalid")
    stalled = qwen.wait("Stalled", "True", "Invalid")

    assert "hostNetwork" in refused["message"]
    assert stalled["message"] == refused["message"]
    assert qwen.wait("Ready", "True")
    qwen.edit(replicas=2)
    assert len(qwen.pods(2, old)) == 2


def test_replicas_act_while_only_the_api_server_refuses_the_rest(
    qwen: Place, running: Engine
) -> None:
    """An autoscaler writes into the same spec, and cannot wait until somebody mends it."""
    old = start(qwen, running, 1, "InPlace")
    qwen.edit(replicas=3, runtime={"podTemplate": {"spec": {"dnsPolicy": "Sometimes"}}})

    qwen.wait("Accepted", "False", "Invalid")

    assert len(qwen.pods(3, old)) == 3
    assert len(qwen.alive()) == 3
    qwen.edit(replicas=1)
    assert len(qwen.pods(1, old)) == 1
    assert qwen.wait("Ready", "True")


def test_live_fields_change_no_pod(qwen: Place, running: Engine) -> None:
    """Tuning, bounds, the fixed table and the Service are no reason to load weights again."""
    old = start(qwen, running, 1, "InPlace")
    (before,) = qwen.alive()
    qwen.edit(
        tuning={"mode": "Off", "bounds": {"max": 3}},
        service={"port": 8080, "annotations": {"a": "b"}},
        speculation={"proposalLength": {"initial": 3}},
    )

    assert qwen.current() == old
    until(
        "the Service has the new port",
        lambda: qwen.child("Service")["spec"]["ports"][0]["port"] == 8080 or None,
    )
    assert qwen.alive()[0]["metadata"]["uid"] == before["metadata"]["uid"]
