"""What the operator makes of a model, and keeps so, on a real API server.

The pods run nowhere: `tests.support.nodeless` says when one is Ready.
"""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.names import LABEL_SERVING
from tests.support import quotas
from tests.support.api import Manifest, condition, until
from tests.support.nodeless import CHILDREN, MODEL, Place, engine, fail, make_ready
from tests.support.operator_process import OperatorProcess
from tests.support.quotas import obeyed_quota


def test_a_model_becomes_its_children(qwen: Place) -> None:
    """One of each, all owned by the model so that they go with it. Only of two replicas may a drain
    of nodes take no more than one."""
    uid = qwen.create(replicas=2)["metadata"]["uid"]
    qwen.wait("Accepted", "True")

    children = qwen.children()

    assert sorted(kind for kind, _ in children) == sorted((*CHILDREN, "ConfigMap"))
    for child in children.values():
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (uid, True)
        assert "finalizers" not in child["metadata"]


def test_the_users_object_stays_as_the_user_wrote_it(qwen: Place) -> None:
    """No annotation, no finalizer, no defaults written back: a GitOps tool sees no difference."""
    created = qwen.create()

    qwen.wait("Accepted", "True")
    qwen.serve()

    model = qwen.read()
    assert model["spec"] == created["spec"]
    assert model["metadata"].get("annotations") == created["metadata"].get("annotations")
    assert "finalizers" not in model["metadata"]
    assert model["metadata"]["generation"] == 1


def test_ready_needs_the_served_name_too(qwen: Place) -> None:
    """A pod can pass its probe before the model is listed, or list another one."""
    qwen.create()
    (pod,) = qwen.pods(1)
    with engine("another-model") as running:
        make_ready(qwen.api, pod, running.address)
        refused = qwen.wait("Ready", "False", "NameNotServed")
        running.names = (qwen.name,)
        qwen.wait("Ready", "True", "Serving")

    assert refused["message"] == f"Pod {pod['metadata']['name']} does not list {qwen.name}."


def test_an_engine_behind_an_api_key_counts_as_answering(qwen: Place) -> None:
    """401 comes from a running server; the operator has no key and needs none."""
    qwen.create()
    (pod,) = qwen.pods(1)
    with engine() as running:
        running.status = 401
        make_ready(qwen.api, pod, running.address)

        qwen.wait("Ready", "True", "Serving")


def test_ready_tells_why_an_engine_died(qwen: Place) -> None:
    """The container's own last words, not the kubelet's back-off."""
    qwen.create()
    (pod,) = qwen.pods(1)
    fail(qwen.api, pod, "OutOfMemoryError: HIP out of memory")

    found = qwen.wait("Ready", "False", "OutOfGpuMemory")

    assert found["message"].endswith(
        f"Pod {pod['metadata']['name']} ended: Error, exit code 1: "
        "OutOfMemoryError: HIP out of memory"
    )


@pytest.mark.parametrize("kind", CHILDREN)
def test_a_deleted_child_comes_back_as_it_was(qwen: Place, kind: str) -> None:
    """By the event of its deletion; a record comes back word for word."""
    qwen.create(replicas=2)
    qwen.wait("Accepted", "True")
    qwen.pods(2)
    before = qwen.children()
    name = max(name for of, name in before if of == kind)
    qwen.api.delete(kind, qwen.namespace, name)

    def back() -> Manifest | None:
        found = qwen.api.get(kind, qwen.namespace, name)
        old = before[kind, name]["metadata"]["uid"]
        return found if found and found["metadata"]["uid"] != old else None

    restored = until(f"{kind} {name} is back", back)

    for section in ("data", "revision", "automountServiceAccountToken"):
        assert restored.get(section) == before[kind, name].get(section)
    assert restored["metadata"]["labels"] == before[kind, name]["metadata"]["labels"]


def test_edits_of_what_we_render_are_undone_and_others_entries_stay(qwen: Place) -> None:
    """One owner a field: ours come back, the rest stays with whoever set it."""
    qwen.create()
    qwen.wait("Accepted", "True")
    service, deployment = qwen.child("Service"), qwen.child("Deployment")
    name = deployment["metadata"]["name"]
    containers = [
        {**container, "image": "somebody/else:1"}
        for container in deployment["spec"]["template"]["spec"]["containers"]
    ]
    theirs = {"metadata": {"annotations": {"team": "search"}, "labels": {"cost": "42"}}}
    template = {"spec": {"replicas": 5, "template": {"spec": {"containers": containers}}}}
    qwen.api.merge("Deployment", qwen.namespace, name, {**theirs, **template})
    qwen.api.merge(
        "Service",
        qwen.namespace,
        service["metadata"]["name"],
        {**theirs, "spec": {"selector": {LABEL_SERVING: "false", "extra": "yes"}}},
    )

    def undone() -> bool:
        now, then = qwen.child("Deployment"), deployment
        return bool(
            now["spec"]["replicas"] == 1
            and now["spec"]["template"] == then["spec"]["template"]
            and qwen.child("Service")["spec"]["selector"][LABEL_SERVING] == "true"
        )

    until("both are undone", lambda: undone() or None)

    for kind in ("Deployment", "Service"):
        metadata = qwen.child(kind)["metadata"]
        assert metadata["annotations"]["team"] == "search"
        assert metadata["labels"]["cost"] == "42"


def test_somebody_who_undoes_each_repair_is_named_and_not_fought(qwen: Place) -> None:
    """An autoscaler on the wrong object: two writers would go on for as long as both live."""
    qwen.create()
    qwen.wait("Accepted", "True")
    path = f"{qwen.api.path('Service', qwen.namespace, qwen.name)}?fieldManager=an-autoscaler"
    theirs = {"spec": {"selector": {LABEL_SERVING: "false"}}}

    def undone() -> bool | None:
        if qwen.child("Service")["spec"]["selector"][LABEL_SERVING] == "true":
            qwen.api.call("PATCH", path, theirs, "application/merge-patch+json")
        accepted = condition(qwen.read(), "Accepted")
        return accepted["reason"] == "Contested" or None

    until("the operator gives way", undone, interval=0.05)

    message = qwen.wait("Accepted", "False", "Contested")["message"]
    assert "an-autoscaler changes spec.selector.speculation.dev/serving again" in message
    assert qwen.child("Service")["spec"]["selector"][LABEL_SERVING] == "false"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("Service", {"spec": {"ports": [{"port": 9}]}}),
        ("ServiceAccount", {}),
        ("ConfigMap", {"data": {"theirs": "1"}}),
    ],
)
def test_a_foreign_object_of_a_needed_name_is_refused_and_left_alone(
    qwen: Place, kind: str, body: dict[str, Any]
) -> None:
    """Taking it over would break whoever made it, and delete it with the model."""
    name = f"{qwen.name}-tuning" if kind == "ConfigMap" else qwen.name
    api_version = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    theirs = qwen.api.create({**api_version, **body}, qwen.namespace)
    qwen.create()

    found = qwen.wait("Accepted", "False", "NameConflict")

    assert found["message"] == (
        f"Not applying {kind} {qwen.namespace}/{name}: it belongs to nobody that this operator "
        f"knows. Rename this model or remove that {kind}."
    )
    assert qwen.api.get(kind, qwen.namespace, name) == theirs
    assert not [name for kind, name in qwen.children() if kind == "Deployment"]


def test_what_the_api_server_forbids_is_told_in_its_words(qwen: Place) -> None:
    """A quota or a policy of somebody else's: silence would look like an operator that hangs."""
    obeyed_quota(qwen.api, qwen.namespace, {"count/services": "0"})
    try:
        qwen.create()
        found = qwen.wait("Accepted", "False", "Forbidden")
    finally:
        qwen.api.delete("ResourceQuota", qwen.namespace, quotas.NAME)

    assert f"The API server forbids Service {qwen.namespace}/{qwen.name}: " in found["message"]
    assert f"exceeded quota: {quotas.NAME}" in found["message"]
    qwen.edit(replicas=2)
    qwen.wait("Accepted", "True")
    assert len(qwen.pods(2)) == 2


def test_scale_changes_the_pods_and_is_reported(qwen: Place) -> None:
    """/scale of the model is what an autoscaler targets; the children's replicas are ours."""
    qwen.create()
    qwen.pods(1)
    path = f"{qwen.api.path(MODEL, qwen.namespace, qwen.name)}/scale"

    qwen.api.call("PATCH", path, {"spec": {"replicas": 3}}, "application/merge-patch+json")
    qwen.serve(3)

    scale = qwen.api.call("GET", path)
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 3
    selected = qwen.api.all("Pod", qwen.namespace, scale["status"]["selector"])
    assert len(selected) == 3


def test_a_model_scaled_to_zero_says_so(qwen: Place) -> None:
    """Nothing is wrong, and nothing serves: a GitOps tool must not wait for it."""
    qwen.create(replicas=0)

    qwen.wait("Ready", "True", "ScaledToZero")

    assert qwen.child("Deployment")["spec"]["replicas"] == 0


def test_a_model_deleted_while_no_operator_runs_is_gone(
    qwen: Place, operator: OperatorProcess
) -> None:
    """Owner references do it: a finalizer would hang for ever. The next operator leads once the
    Lease of the dead one has run out, which `start` waits for."""
    qwen.create()
    qwen.wait("Accepted", "True")
    deployment = qwen.child("Deployment")["metadata"]["name"]
    operator.kill(long_ago=False)

    qwen.api.delete(MODEL, qwen.namespace, qwen.name)

    gone = qwen.api.get(MODEL, qwen.namespace, qwen.name) is None
    until(
        "its Deployment is gone",
        lambda: not qwen.api.get("Deployment", qwen.namespace, deployment) or None,
    )
    operator.start()
    assert gone


@pytest.mark.parametrize(
    ("overlay", "words"),
    [
        ({"dnsPolicy": "Sometimes"}, 'Unsupported value: "Sometimes"'),
        ({"dnsPolizy": "Default"}, 'unknown field "spec.template.spec.dnsPolizy"'),
        ({"hostAliases": "many"}, "cannot unmarshal string"),
    ],
    ids=["value", "field", "type"],
)
def test_an_overlay_that_only_the_api_server_refuses_leaves_what_serves(
    qwen: Place, overlay: dict[str, Any], words: str
) -> None:
    """In place the old pod would go first, and no other would ever come."""
    qwen.create()
    with engine(qwen.name) as running:
        (pod,) = qwen.pods(1)
        make_ready(qwen.api, pod, running.address)
        qwen.wait("Ready", "True")
        qwen.edit(runtime={"podTemplate": {"spec": overlay}})

        refused = qwen.wait("Accepted", "False", "Invalid")

        assert (
            f"The API server refuses Deployment {qwen.namespace}/{qwen.name}-"
            in (refused["message"])
        )
        assert words in refused["message"]
        (still,) = qwen.alive()
        assert still["metadata"]["uid"] == pod["metadata"]["uid"]
        assert qwen.child("Deployment")["spec"]["replicas"] == 1
        assert qwen.wait("Ready", "True")


def test_an_annotation_taken_out_of_the_spec_leaves_the_service(qwen: Place) -> None:
    """A cloud's load balancer would go on acting by it."""
    qwen.create(service={"annotations": {"a": "1", "b": "2"}})
    qwen.wait("Accepted", "True")
    theirs = {"metadata": {"annotations": {"theirs": "3"}}}
    qwen.api.merge("Service", qwen.namespace, qwen.name, theirs)

    qwen.edit(service={"annotations": {"a": None}})

    def left() -> bool | None:
        annotations = qwen.child("Service")["metadata"]["annotations"]
        return annotations == {"b": "2", "theirs": "3"} or None

    until("only a is gone", left)


def test_a_record_lost_while_no_operator_ran_is_rebuilt_from_its_deployment(
    qwen: Place, operator: OperatorProcess
) -> None:
    """Rendered anew it would name the images of today and replace what serves."""
    qwen.create()
    qwen.wait("Accepted", "True")
    before = qwen.child("Deployment")
    name = before["metadata"]["name"]
    images = operator.engine_image, operator.plugin_image
    operator.stop()
    qwen.api.delete("ControllerRevision", qwen.namespace, name)
    operator.engine_image, operator.plugin_image = "example/engine:2", "example/plugin:2"
    operator.start()

    record = until(
        "the record is back", lambda: qwen.api.get("ControllerRevision", qwen.namespace, name)
    )

    operator.stop()
    operator.engine_image, operator.plugin_image = images
    operator.start()
    assert record["data"]["template"] == before["spec"]["template"]
    assert qwen.child("Deployment")["spec"] == before["spec"]
