"""Watched copies: what is news, what is kept, and what a model's children are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from speculative_operator.cluster.cache import Cache, trimmed_copy
from speculative_operator.cluster.manifests import Reference

MODEL = {
    "kind": "SpeculativeModel",
    "metadata": {"name": "qwen", "namespace": "prod", "uid": "m1", "resourceVersion": "1"},
}


def child(
    kind: str = "Service", version: int = 1, uid: str = "c1", **fields: Any
) -> dict[str, Any]:
    """A child of the model qwen."""
    owner = {"kind": "SpeculativeModel", "name": "qwen", "uid": "m1", "controller": True}
    metadata = {
        "name": "qwen",
        "namespace": "prod",
        "uid": uid,
        "resourceVersion": str(version),
        "ownerReferences": [owner],
    }
    return {"kind": kind, "metadata": metadata, **fields}


@pytest.fixture
def cache() -> Cache:
    """One that knows the model."""
    made = Cache()
    made.put(MODEL)
    return made


def test_the_echo_of_a_write_is_no_news(cache: Cache) -> None:
    """The answer to the write was stored already, so the watch wakes nobody."""
    written = child(version=7, spec={"a": 1})

    assert [cache.put(written), cache.put(written)] == [True, False]


def test_an_event_older_than_the_answer_to_a_write_is_dropped(cache: Cache) -> None:
    """Else the next pass would repeat the write."""
    cache.put(child(version=7, spec={"a": 2}))

    assert cache.put(child(version=6, spec={"a": 1})) is False
    found = cache.get(Reference("Service", "prod", "qwen"))
    assert found is not None
    assert found.manifest()["spec"] == {"a": 2}


def test_a_change_of_what_nobody_reads_is_no_news(cache: Cache) -> None:
    """managedFields and a Service's status change without meaning to us."""
    cache.put(child(version=1, spec={"a": 1}))

    assert cache.put(child(version=2, spec={"a": 1}, status={"loadBalancer": {}})) is False


def test_a_new_object_of_the_same_name_is_news(cache: Cache) -> None:
    """Deleted and made again, perhaps by somebody else."""
    cache.put(child(version=5))

    assert cache.put(child(version=6, uid="c2")) is True


def test_the_deletion_of_an_earlier_object_leaves_its_successor(cache: Cache) -> None:
    """Events of two objects of one name may come in either order."""
    cache.put(child(version=6, uid="c2"))

    assert cache.remove(Reference("Service", "prod", "qwen"), "c1") is False
    assert cache.get(Reference("Service", "prod", "qwen")) is not None


def test_a_late_event_of_an_earlier_object_leaves_its_successor(cache: Cache) -> None:
    """Its deletion, which comes next, would else take the only copy of the name away."""
    cache.put(child(version=6, uid="c2"))

    assert cache.put(child(version=5, uid="c1")) is False
    found = cache.get(Reference("Service", "prod", "qwen"))
    assert found is not None
    assert found.uid == "c2"


def test_an_answer_that_comes_after_the_deletion_is_dropped(cache: Cache) -> None:
    """Else a copy would stand for an object that is gone."""
    cache.put(child(version=5))
    cache.remove(Reference("Service", "prod", "qwen"), "c1")

    assert cache.put(child(version=6)) is False


def test_children_are_found_by_the_uid_of_their_model(cache: Cache) -> None:
    """A model that was made again has none of the old one's."""
    cache.put(child("Service"))
    cache.put(child("Deployment", uid="c2", spec={}))

    assert {copy.reference.kind for copy in cache.children("m1")} == {"Service", "Deployment"}
    assert list(cache.children("another")) == []


@pytest.mark.parametrize("kind", ["ControllerRevision", "ConfigMap"])
def test_a_deleted_record_is_remembered_until_it_is_back(cache: Cache, kind: str) -> None:
    """The spec of today would render another one with the operator's images of today."""
    cache.put(child(kind, data={"a": "1"}))
    cache.remove(Reference(kind, "prod", "qwen"), "c1")

    (lost,) = cache.lost("m1")
    assert lost.manifest()["data"] == {"a": "1"}

    cache.put(child(kind, version=9, uid="c2", data={"a": "1"}))
    assert list(cache.lost("m1")) == []


def test_what_we_delete_ourselves_is_not_remembered(cache: Cache) -> None:
    """A revision that is over is not to come back."""
    cache.put(child("ControllerRevision", data={}))
    cache.drop(Reference("ControllerRevision", "prod", "qwen"), "c1")

    assert list(cache.lost("m1")) == []


def test_what_was_deleted_while_another_operator_led_is_forgotten(cache: Cache) -> None:
    """That one deletes revisions which are over, and a standby sees somebody delete them."""
    cache.put(child("ControllerRevision", data={}))
    cache.remove(Reference("ControllerRevision", "prod", "qwen"), "c1")

    cache.forget_lost()

    assert list(cache.lost("m1")) == []


def test_the_tuners_memory_is_not_kept_only_whether_there_is_any() -> None:
    """It is up to 512 KiB a model and read once."""
    labels = {"app.kubernetes.io/component": "memory"}
    memory = child("ConfigMap", data={"state.json": "x"}, binaryData={"history.json.gz": "y"})
    memory["metadata"]["labels"] = labels

    kept = json.loads(trimmed_copy(memory).body)

    assert kept["stored"] is True
    assert "data" not in kept
    assert "binaryData" not in kept


def test_a_pods_kubelet_heartbeat_is_no_news(cache: Cache) -> None:
    """Probe times and the like change all day."""

    def pod(version: int, probe: str) -> dict[str, Any]:
        condition = {"type": "Ready", "status": "True", "lastProbeTime": probe}
        labels = {"speculation.dev/model-uid": "m1"}
        metadata = {**child()["metadata"], "labels": labels, "resourceVersion": str(version)}
        return {"kind": "Pod", "metadata": metadata, "status": {"conditions": [condition]}}

    assert [cache.put(pod(1, "10:00")), cache.put(pod(2, "10:01"))] == [True, False]


@pytest.mark.parametrize(("restarts", "kept"), [(0, []), (1, ["2026-01-01T00:00:01Z"])])
def test_since_when_a_pod_is_not_ready_is_kept_only_where_its_engine_has_ended(
    restarts: int, kept: list[str]
) -> None:
    """Each pod begins so, and that must not cost a pass."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:01Z"}
    engine = {"name": "engine", "ready": False, "restartCount": restarts, "state": {}}
    metadata = {**child()["metadata"], "labels": {"speculation.dev/model-uid": "m1"}}
    status = {"conditions": [condition], "containerStatuses": [engine]}

    copy = trimmed_copy({"kind": "Pod", "metadata": metadata, "status": status}).manifest()

    assert [c["lastTransitionTime"] for c in copy["status"]["conditions"]] == kept
