"""What counts as a difference between what is rendered and what lives."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.cluster.compare import first_difference


def pod(**container: Any) -> dict[str, Any]:
    """A pod template with one container."""
    return {"spec": {"containers": [{"name": "engine", **container}]}}


SAME: dict[str, tuple[Any, Any]] = {
    "defaults that the API server added": (
        pod(image="a"),
        pod(image="a", terminationMessagePath="/dev/termination-log"),
    ),
    "containers of others, wherever they stand": (
        pod(image="a"),
        {"spec": {"containers": [{"name": "sidecar"}, {"name": "engine", "image": "a"}]}},
    ),
    "variables of others": (
        pod(env=[{"name": "A", "value": "1"}]),
        pod(env=[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]),
    ),
    "labels of others": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
    ),
    "an empty value that was dropped": (
        pod(env=[{"name": "A", "value": ""}], args=[]),
        pod(env=[{"name": "A"}]),
    ),
    "false that was dropped": (
        pod(volumeMounts=[{"mountPath": "/a", "name": "a", "readOnly": False}]),
        pod(volumeMounts=[{"mountPath": "/a", "name": "a"}]),
    ),
    "a quantity written otherwise": (
        pod(resources={"limits": {"memory": "1024Mi", "cpu": "1000m", "amd.com/gpu": 1}}),
        pod(resources={"limits": {"memory": "1Gi", "cpu": "1", "amd.com/gpu": "1"}}),
    ),
    "a size written otherwise": (
        {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "8192Mi"}}]},
        {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "8Gi"}}]},
    ),
    "a port of others": (
        {"spec": {"ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}]}},
        {
            "spec": {
                "ports": [
                    {"port": 9, "protocol": "TCP"},
                    {"port": 80, "targetPort": "http", "protocol": "TCP", "nodePort": 30000},
                ]
            }
        },
    ),
}


@pytest.mark.parametrize("rendered, live", SAME.values(), ids=SAME)
def test_what_the_api_server_and_others_add_is_no_difference(rendered: Any, live: Any) -> None:
    """Else an unchanged model would be written for ever."""
    assert first_difference(rendered, live) is None


DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "another image": (pod(image="a"), pod(image="b"), "spec.containers.0.image"),
    "a container that is gone": (pod(image="a"), {"spec": {"containers": []}}, "spec.containers.0"),
    "an argument more": (pod(args=["a"]), pod(args=["a", "b"]), "spec.containers.0.args"),
    "arguments in another order": (
        pod(args=["a", "b"]),
        pod(args=["b", "a"]),
        "spec.containers.0.args.0",
    ),
    "another kind of volume": (
        {"volumes": [{"name": "a", "emptyDir": {}}]},
        {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]},
        "volumes.0.emptyDir",
    ),
    "another amount": (
        pod(resources={"limits": {"memory": "1Gi"}}),
        pod(resources={"limits": {"memory": "1G"}}),
        "spec.containers.0.resources.limits.memory",
    ),
    "fewer replicas": ({"spec": {"replicas": 1}}, {"spec": {"replicas": 0}}, "spec.replicas"),
    "a label that is gone": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {}},
        "metadata.labels",
    ),
    "the same port by another protocol": (
        {"ports": [{"port": 80, "protocol": "TCP"}]},
        {"ports": [{"port": 80, "protocol": "UDP"}]},
        "ports.0",
    ),
}


@pytest.mark.parametrize("rendered, live, path", DIFFERENT.values(), ids=DIFFERENT)
def test_what_we_render_and_is_not_there_is_found(rendered: Any, live: Any, path: str) -> None:
    """With its place, which the log tells."""
    assert first_difference(rendered, live) == path
