"""What a user may lay over the pod template, and what the operator keeps for itself."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.overlay import check, laid_over


def engine(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "engine", **fields}]}}


def pod(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


REFUSED: list[tuple[dict[str, Any], str]] = [
    (engine(args=["--spec-tokens", "9"]), "containers[engine].args: Set spec.runtime.args"),
    (engine(command=["sh"]), "containers[engine].command: Set spec.runtime.args"),
    (engine(image="mine"), "containers[engine].image: Set spec.runtime.image"),
    (engine(env=[{"name": "PYTHONPATH", "value": "/x"}]), "containers[engine].env: Set spec.run"),
    (engine(envFrom=[{"secretRef": {"name": "x"}}]), "containers[engine].envFrom: List the"),
    (engine(resources={"limits": {"amd.com/gpu": "8"}}), "containers[engine].resources.limits"),
    (engine(resources={"limits": {"cpu": "8"}}), "containers[engine].resources: Set spec.runtime"),
    (engine(securityContext={"privileged": True}), "containers[engine].securityContext.privileged"),
    (engine(securityContext={"runAsUser": 0}), "containers[engine].securityContext: Set spec.run"),
    (engine(ports=[{"name": "http", "containerPort": 1}]), "ports[http]: The operator has a port"),
    (
        engine(volumeMounts=[{"name": "x", "mountPath": "/opt/speculation/live_speculation"}]),
        "volumeMounts[x]: /opt/speculation/live_speculation holds the live speculation plugin",
    ),
    (
        engine(volumeMounts=[{"name": "x", "mountPath": "/etc/speculation/"}]),
        "volumeMounts[x]: /etc/speculation holds the live speculation plugin",
    ),
    (
        pod(containers=[{"name": "side", "securityContext": {"privileged": True}}]),
        "containers[side].securityContext.privileged: A privileged container sees every GPU",
    ),
    (
        pod(containers=[{"name": "side", "resources": {"requests": {"amd.com/gpu": "1"}}}]),
        "containers[side].resources.requests: amd.com/gpu: only the engine has GPUs",
    ),
    (
        pod(initContainers=[{"name": "live-speculation", "image": "x"}]),
        "initContainers[live-speculation]: The operator has a container of this name",
    ),
    (pod(volumes=[{"name": "schedule", "emptyDir": {}}]), "volumes[schedule]: The operator has a"),
    (pod(hostPID=True), "spec.hostPID: An engine never sees the host's processes"),
    (pod(hostNetwork=True), "spec.hostNetwork: Engines on one node would fight for port 8000"),
    (pod(hostIPC=True), "spec.hostIPC: Shared memory is mounted already"),
    (pod(restartPolicy="Never"), "spec.restartPolicy: vLLM exits 0 when its engine dies"),
    (pod(serviceAccountName="x"), "spec.serviceAccountName: Set spec.runtime.serviceAccountName"),
    (pod(nodeSelector={"a": "b"}), "spec.nodeSelector: Set spec.accelerator.nodeSelector"),
    (pod(tolerations=[]), "spec.tolerations: Set spec.accelerator.tolerations"),
    (pod(affinity={"nodeAffinity": {}}), "affinity.nodeAffinity: The operator chooses nodes"),
    (pod(nodeName="gpu-1"), "spec.nodeName: It goes past the scheduler, which counts GPUs. Set"),
    (pod(terminationGracePeriodSeconds=1), "Set spec.runtime.drainSeconds"),
    (
        {"metadata": {"labels": {"speculation.dev/serving": "false"}}},
        "metadata.labels: speculation.dev/serving is the operator's",
    ),
    (
        {"metadata": {"labels": {"app.kubernetes.io/component": "x"}}},
        "metadata.labels: app.kubernetes.io/component is the operator's",
    ),
    (
        {"metadata": {"annotations": {"speculation.dev/schedule": "x"}}},
        "metadata.annotations: speculation.dev/schedule is the operator's",
    ),
    ({"metadata": {"name": "x"}}, "metadata.name: Only annotations and labels can be overlaid"),
    ({"kind": "Pod"}, "podTemplate.kind: Only metadata and spec can be overlaid"),
    (pod(affinity=None), "spec.affinity: null takes nothing away here"),
    (pod(containers={"engine": {}}), "spec.containers: It is a list in a pod"),
    (pod(containers=[{"image": "x"}]), "spec.containers[0]: It has no name"),
    ({"spec": ["x"]}, "podTemplate.spec: It is a map in a pod"),
]


@pytest.mark.parametrize(("overlay", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_the_operator_needs_is_refused_in_words(overlay: dict[str, Any], words: str) -> None:
    """CEL cannot look inside of the overlay, so this is the only guard."""
    with pytest.raises(ModelInvalid) as refusal:
        check(overlay)

    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "overlay",
    [
        None,
        {},
        {"metadata": {"labels": {"team": "a"}, "annotations": {"linkerd.io/inject": "enabled"}}},
        engine(volumeMounts=[{"name": "cache", "mountPath": "/home/engine/.cache/huggingface"}]),
        engine(ports=[{"name": "debug", "containerPort": 5678}]),
        engine(startupProbe={"failureThreshold": 600}),
        engine(lifecycle={"preStop": {"sleep": {"seconds": 30}}}),
        pod(volumes=[{"name": "cache", "persistentVolumeClaim": {"claimName": "hf"}}]),
        pod(containers=[{"name": "side", "image": "x", "args": ["--a"], "env": []}]),
        pod(initContainers=[{"name": "warm", "image": "x"}]),
        pod(affinity={"podAntiAffinity": {}}),
        pod(schedulerName="volcano"),
        pod(topologySpreadConstraints=[{"maxSkew": 1}], priority=5),
    ],
    ids=str,
)
def test_the_rest_is_the_users(overlay: dict[str, Any] | None) -> None:
    """The neighbours of the refusals: the overlay is there for what the spec has no field for."""
    check(overlay)


def test_maps_are_merged_and_named_things_by_name() -> None:
    """As people know it from patches of pods."""
    base = {
        "metadata": {"labels": {"ours": "1"}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "image": "x",
                    "volumeMounts": [{"name": "home", "mountPath": "/home"}],
                }
            ],
            "volumes": [{"name": "home", "emptyDir": {}}],
        },
    }
    overlay = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "containers": [
                {"name": "engine", "volumeMounts": [{"name": "hf", "mountPath": "/home/hf"}]},
                {"name": "side", "image": "y"},
            ],
            "volumes": [{"name": "hf", "persistentVolumeClaim": {"claimName": "hf"}}],
            "priorityClassName": "high",
        },
    }

    assert laid_over(base, overlay) == {
        "metadata": {"labels": {"ours": "1", "team": "a"}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "image": "x",
                    "volumeMounts": [
                        {"name": "home", "mountPath": "/home"},
                        {"name": "hf", "mountPath": "/home/hf"},
                    ],
                },
                {"name": "side", "image": "y"},
            ],
            "volumes": [
                {"name": "home", "emptyDir": {}},
                {"name": "hf", "persistentVolumeClaim": {"claimName": "hf"}},
            ],
            "priorityClassName": "high",
        },
    }


def test_mounts_are_told_apart_by_their_path() -> None:
    """One volume is often mounted twice."""
    base = {"volumeMounts": [{"name": "home", "mountPath": "/home"}]}
    overlay = {"volumeMounts": [{"name": "disk", "mountPath": "/home"}]}

    assert laid_over(base, overlay) == overlay


def test_a_list_without_names_is_replaced() -> None:
    """Nothing tells which of its entries is meant."""
    base = {"args": ["a", "b"]}

    assert laid_over(base, {"args": ["c"]}) == {"args": ["c"]}


def test_neither_side_is_changed() -> None:
    """The overlay belongs to a frozen spec; a second rendering must give the same."""
    base: dict[str, Any] = {"labels": {"a": "1"}, "volumes": [{"name": "v", "emptyDir": {}}]}
    overlay = {"labels": {"b": "2"}, "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}
    before = (repr(base), repr(overlay))

    laid_over(base, overlay)

    assert (repr(base), repr(overlay)) == before


def test_a_value_of_another_kind_is_refused_with_its_place() -> None:
    """The API server would say so only for the whole Deployment."""
    with pytest.raises(ModelInvalid, match=r"podTemplate\.labels: It is a map in a pod"):
        laid_over({"labels": {"a": "1"}}, {"labels": "b"})
