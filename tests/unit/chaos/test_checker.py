"""The rules of the chaos suite: each finds what it is about, and nothing in a sound picture."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from local.audit import Request
from speculative_operator.tuning.memory import Memory, to_data
from speculative_operator.tuning.schedule import schedule_hash
from speculative_operator.tuning.state import State
from tests.chaos import checker
from tests.chaos.clients import Asked
from tests.chaos.picture import Picture
from tests.support.api import Manifest

KEY, UID = "aaaa", "model-uid"
TEXT = json.dumps({"table": [[1, 64, 3]]})


def owned(name: str, owner: str, kind: str = "Deployment") -> Manifest:
    reference = {"kind": kind, "name": owner, "uid": UID, "controller": True}
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


def a_pod(name: str) -> Manifest:
    pod = owned(name, f"m-{KEY}-set", "ReplicaSet")
    pod["metadata"]["labels"] = {
        "speculation.dev/revision": KEY,
        "speculation.dev/serving": "true",
    }
    pod["spec"] = {"containers": [{"args": ["--max-num-seqs=64"]}]}
    pod["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    return pod


def conditions(**reasons: str) -> list[Manifest]:
    return [
        {
            "type": kind,
            "status": "False" if kind == "Progressing" else "True",
            "reason": reason,
            "observedGeneration": 4,
        }
        for kind, reason in reasons.items()
    ]


def a_picture() -> Picture:
    """Two pods that serve what the spec says."""
    pods = (a_pod("one"), a_pod("two"))
    status = {
        "observedGeneration": 4,
        "conditions": conditions(Accepted="Valid", Ready="Serving", Progressing="Settled"),
        "replicas": 2,
        "readyReplicas": 2,
        "replicaDetails": [{"name": name, "ready": True} for name in ("one", "two")],
        "revisions": {"current": KEY},
        "schedule": [{"minBatch": 1, "maxBatch": 64, "proposalLength": 3}],
    }
    spec = {
        "replicas": 2,
        "model": {"maxNumSeqs": 64},
        "service": {"annotations": {"edited": "1"}},
    }
    metadata = {"name": "m", "uid": UID, "generation": 4}
    memory = owned("m-tuning", "m")
    memory["data"] = dict(to_data(Memory({KEY: State()})).data)
    schedule = owned(f"m-{KEY}-schedule", "m")
    schedule["data"] = {"schedule.json": TEXT}
    service = owned("m", "m")
    service["metadata"]["annotations"] = {"edited": "1"}
    return Picture(
        model={"metadata": metadata, "spec": spec, "status": status},
        pods=pods,
        objects={
            "ConfigMap": (memory, schedule),
            "ControllerRevision": (owned(f"m-{KEY}", "m"),),
            "Deployment": (owned(f"m-{KEY}", "m"),),
            "ReplicaSet": (owned(f"m-{KEY}-set", f"m-{KEY}"),),
            "Service": (service,),
            "ServiceAccount": (),
        },
        pages={name: {"hash_in_force": schedule_hash(TEXT)} for name in ("one", "two")},
        routed=frozenset({"one", "two"}),
    )


def test_nothing_is_wrong_with_a_sound_picture() -> None:
    """Else no fault would ever heal."""
    assert [*checker.state(a_picture()), *checker.told(a_picture())] == []


def another(change: Callable[[Picture], Picture | None]) -> Picture:
    """A sound picture with one thing changed, in place or as a copy."""
    picture = copy.deepcopy(a_picture())
    return change(picture) or picture


def status(**changes: Any) -> Callable[[Picture], None]:
    return lambda seen: seen.model["status"].update(changes)


def pod(**changes: Any) -> Callable[[Picture], None]:
    return lambda seen: seen.pods[0].update(changes)


def objects(kind: str, *found: Manifest) -> Callable[[Picture], Picture]:
    return lambda seen: replace(seen, objects={**seen.objects, kind: found})


BROKEN: dict[str, Callable[[Picture], Picture | None]] = {
    "1 pods": lambda seen: replace(seen, pods=seen.pods[:1]),
    "1 of them ending": lambda seen: seen.pods[0]["metadata"].update(deletionTimestamp="now"),
    "is of revision bbbb": lambda seen: seen.pods[0]["metadata"]["labels"].update(
        {"speculation.dev/revision": "bbbb"}
    ),
    "does not serve": pod(status={}),
    "does not run what the spec says": pod(spec={"containers": [{"args": ["--max-num-seqs=8"]}]}),
    "the Service sends requests to": lambda seen: replace(seen, routed=frozenset({"one"})),
    "has no ReplicaSet": objects("ReplicaSet"),
    "ReplicaSet left has no owner": objects("ReplicaSet", owned("left", "m-bbbb")),
    "Service m has no owner": objects("Service", {"metadata": {"name": "m"}}),
    "ConfigMap m-bbbb-schedule is left over": objects(
        "ConfigMap", owned("m-bbbb-schedule", "m"), owned("m-tuning", "m")
    ),
    "Deployment m-aaaa has no record": objects("ControllerRevision"),
    "the Service is not what": objects("Service"),
    "the status is of an older spec": status(observedGeneration=3),
    "Ready is not True": status(conditions=conditions(Accepted="Valid", Progressing="Settled")),
    "Progressing: RollingOut": status(
        conditions=conditions(Accepted="Valid", Ready="Serving", Progressing="RollingOut")
    ),
    "the status has 1 of 2 ready": status(readyReplicas=1),
    "the status calls ['one'] ready": status(replicaDetails=[{"name": "one", "ready": True}]),
    "the status tells of another schedule": status(schedule=[]),
    "one plays": lambda seen: replace(seen, pages={**seen.pages, "one": {"hash_in_force": ""}}),
    "['two'] do not answer": lambda seen: replace(seen, pages={"one": seen.pages["one"]}),
    "nothing is remembered": objects(
        "ConfigMap", {**owned(f"m-{KEY}-schedule", "m"), "data": {"schedule.json": TEXT}}
    ),
    "there is no schedule: None": objects("ConfigMap", owned("m-tuning", "m")),
    "there is no schedule: broken": objects(
        "ConfigMap", {**owned(f"m-{KEY}-schedule", "m"), "data": {"schedule.json": "broken"}}
    ),
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_what_is_wrong_with_a_picture_is_named(complaint: str) -> None:
    """One rule each."""
    seen = another(BROKEN[complaint])

    found = [*checker.state(seen), *checker.told(seen)]

    assert any(complaint in each for each in found), found


@pytest.mark.parametrize(
    ("asked", "cut", "outage", "complaints"),
    [
        (Asked(1.0, 1), False, False, 0),
        (Asked(1.0, 3), False, False, 1),
        (Asked(1.0, 3), True, False, 0),
        (Asked(1.0, 9, "refused"), True, False, 1),
        (Asked(1.0, 9, "refused"), False, True, 0),
    ],
)
def test_a_request_may_be_sent_again_only_where_something_was_taken_away(
    asked: Asked, *, cut: bool, outage: bool, complaints: int
) -> None:
    """And lost only where nothing could serve."""
    assert len(list(checker.requests([asked], cut=cut, outage=outage))) == complaints


def test_no_traffic_shows_nothing() -> None:
    """A fault without requests would heal without loss whatever it does."""
    assert list(checker.requests([], cut=True, outage=True)) == ["no request was sent"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, ""),
        ({"code": 409}, ""),
        ({"resource": "speculativemodels", "subresource": "status"}, ""),
        ({"resource": "speculativemodels"}, "the user's object"),
        ({"namespace": "theirs"}, "outside its namespace"),
        ({"resource": "secrets"}, "not its own"),
        ({"code": 403}, "refused"),
    ],
)
def test_only_its_own_objects_are_written(change: dict[str, Any], complaint: str) -> None:
    """A conflict is no refusal: somebody else was first."""
    sound = Request(
        at=datetime.now(UTC),
        user="",
        agent="",
        verb="patch",
        group="",
        resource="configmaps",
        subresource="",
        namespace="ours",
        name="m",
        code=200,
        dry_run=False,
    )

    found = list(checker.writes([replace(sound, **change)], "ours"))

    assert len(found) == bool(complaint)
    assert all(complaint in each for each in found)


def test_only_new_decisions_without_a_cause_are_told() -> None:
    """What was decided before the fault is none of its doing."""
    old = {"time": "1", "message": "old", "reason": "FellBack"}
    new = [{"time": "2", "message": "", "reason": reason} for reason in ("FellBack", "Changed")]

    (found,) = checker.decisions([old], [old, *new], {"Changed"})

    assert "FellBack" in found
