"""The children of a model besides its pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from speculative_operator.api.exposure import ServiceSpec
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.runtime import RuntimeSpec
from speculative_operator.plan.model import plan
from speculative_operator.plan.names import Owner
from speculative_operator.plan.settings import Settings
from speculative_operator.resources.config_maps import memory_configmap, schedule_configmap
from speculative_operator.resources.controller_revision import controller_revision, recorded
from speculative_operator.resources.deployment import deployment
from speculative_operator.resources.service import service
from speculative_operator.resources.service_account import service_account
from tests.unit.plan.builders import SETTINGS, a_model

MODEL = a_model()
OWNER = Owner.of(MODEL)


def children(model: SpeculativeModel = MODEL) -> list[dict[str, Any]]:
    owner, record = Owner.of(model), controller_revision(plan(model, SETTINGS))
    account = service_account(owner, model.spec.runtime)
    assert account is not None
    return [
        account,
        service(owner, model.spec.service),
        record,
        schedule_configmap(owner, "0123456789", "{}"),
        memory_configmap(owner, {"state.json": "{}"}, {}),
        deployment(owner, recorded(record), 2),
    ]


@pytest.mark.parametrize("child", children(), ids=lambda child: child["kind"])
def test_every_child_is_deleted_with_its_model(child: dict[str, Any]) -> None:
    """By the garbage collector, so that no finalizer is needed; none of them may block it."""
    (reference,) = child["metadata"]["ownerReferences"]

    assert reference["uid"] == MODEL.metadata.uid
    assert reference["controller"] is True
    assert reference["blockOwnerDeletion"] is False


@pytest.mark.parametrize("child", children(), ids=lambda child: child["kind"])
def test_every_child_is_told_by_its_labels(child: dict[str, Any]) -> None:
    """The operator watches by them, and people list by them."""
    labels = child["metadata"]["labels"]

    assert labels["app.kubernetes.io/managed-by"] == "speculative-operator"
    assert labels["speculation.dev/model-uid"] == MODEL.metadata.uid
    assert all(len(value) <= 63 for value in labels.values())


def test_a_long_name_makes_valid_children() -> None:
    """A resource's name may have 253 characters, a label value and a DNS label 63."""
    for child in children(a_model(name="q" * 253)):
        assert len(child["metadata"]["name"]) <= 63
        assert all(len(value) <= 63 for value in child["metadata"]["labels"].values())
        assert child["metadata"]["ownerReferences"][0]["name"] == "q" * 253


def test_labels_of_the_model_never_reach_a_child() -> None:
    """A label of Argo CD's on a child makes Argo CD delete it."""
    model = MODEL.model_copy(
        update={
            "metadata": MODEL.metadata.model_copy(
                update={"labels": {"argocd.argoproj.io/instance": "x"}}
            )
        }
    )

    assert "argocd" not in json.dumps(children(model))


def test_the_service_reaches_serving_pods_of_every_revision() -> None:
    """During a rollout both revisions serve; a pod on trial does not."""
    assert service(OWNER, ServiceSpec())["spec"]["selector"] == {
        "speculation.dev/model-uid": MODEL.metadata.uid,
        "speculation.dev/serving": "true",
    }


def test_the_service_is_reached_as_the_user_says() -> None:
    """Cloud load balancers are told by annotations."""
    spec = ServiceSpec.model_validate(
        {"type": "LoadBalancer", "port": 443, "annotations": {"a": "b"}}
    )
    found = service(OWNER, spec)

    assert found["metadata"]["annotations"] == {"a": "b"}
    assert found["spec"]["type"] == "LoadBalancer"
    assert found["spec"]["ports"][0]["port"] == 443


def test_the_pods_of_a_deployment_match_its_selector() -> None:
    """The API server refuses it otherwise; and no other revision's pods may match."""
    found = deployment(OWNER, recorded(controller_revision(plan(MODEL, SETTINGS))), 2)
    selector = found["spec"]["selector"]["matchLabels"]

    assert selector.items() <= found["spec"]["template"]["metadata"]["labels"].items()
    assert selector == {
        "speculation.dev/model-uid": MODEL.metadata.uid,
        "speculation.dev/revision": plan(MODEL, SETTINGS).key,
    }


def test_a_recorded_revision_is_read_back_as_it_was() -> None:
    """Through JSON, as the API server keeps it."""
    planned = plan(MODEL, SETTINGS)
    read = recorded(json.loads(json.dumps(controller_revision(planned))))

    assert read.key == planned.key
    assert read.facts == planned.facts
    assert read.template == controller_revision(planned)["data"]["template"]


def test_a_newer_operator_reads_an_older_record() -> None:
    """Revisions live for years; a record is never rewritten."""
    record = json.loads(json.dumps(controller_revision(plan(MODEL, SETTINGS))))
    record["data"]["facts"]["aFactOfAnotherVersion"] = 1

    assert recorded(record).facts == plan(MODEL, SETTINGS).facts


def test_new_images_of_the_operator_change_no_recorded_pod() -> None:
    """The key is the same, so the record stands, and the pods are compared with the record."""
    newer = Settings(engine_image="vllm:newer", plugin_image="plugin:2")
    record = controller_revision(plan(MODEL, SETTINGS))

    assert plan(MODEL, newer).key == plan(MODEL, SETTINGS).key
    assert deployment(OWNER, recorded(record), 2)["spec"]["template"] == record["data"]["template"]


def test_a_deployment_never_surges_by_itself() -> None:
    """If its template is edited and put back, there may be no GPU for one pod more."""
    found = deployment(OWNER, recorded(controller_revision(plan(MODEL, SETTINGS))), 2)

    assert found["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_an_account_of_the_users_own_is_used() -> None:
    """Then none is made."""
    runtime = RuntimeSpec.model_validate({"serviceAccountName": "mine"})
    template = controller_revision(plan(a_model(runtime={"serviceAccountName": "mine"}), SETTINGS))[
        "data"
    ]["template"]

    assert service_account(OWNER, runtime) is None
    assert template["spec"]["serviceAccountName"] == "mine"


def test_the_schedule_is_where_the_pod_looks_for_it() -> None:
    """Name, key and folder must agree, or the plugin never finds a file."""
    planned = plan(MODEL, SETTINGS)
    spec = controller_revision(planned)["data"]["template"]["spec"]
    (volume,) = (volume for volume in spec["volumes"] if "configMap" in volume)
    (mount,) = (
        mount for mount in spec["containers"][0]["volumeMounts"] if mount["name"] == volume["name"]
    )
    variables = {v["name"]: v.get("value") for v in spec["containers"][0]["env"]}
    written = schedule_configmap(OWNER, planned.key, "{}")

    assert written["metadata"]["name"] == volume["configMap"]["name"]
    assert [f"{mount['mountPath']}/{key}" for key in written["data"]] == [
        variables["SPECULATION_SCHEDULE"]
    ]
