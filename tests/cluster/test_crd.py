"""The CustomResourceDefinition on the real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from speculative_operator.api.conditions import ConditionStatus, ConditionType, Reason
from speculative_operator.api.status import Condition, Evidence, Mode, ModelStatus, Revisions
from tests.cluster.conftest import CopiedKind
from tests.support.kubectl import Kubectl
from tools.generate import CHECKOUT, CRD

MINIMAL: dict[str, Any] = {
    "model": {"source": "hf://Qwen/Qwen3-8B"},
    "speculation": {"method": "ngram"},
    "accelerator": {"products": ["MI300X"]},
}
EXAMPLES = sorted((CHECKOUT / "examples").glob("*.yaml"))


def test_the_real_api_server_takes_every_rule_within_its_cost_budget(
    kubectl: Kubectl, copied_kind: CopiedKind
) -> None:
    """A rule over something without a maximum is refused when the CRD is created, not before."""
    crd = json.loads(kubectl("get", "crd", copied_kind.resource, "-o", "json"))
    standing = {each["type"]: each["status"] for each in crd["status"]["conditions"]}

    assert standing.get("NonStructuralSchema", "False") == "False"
    assert standing["Established"] == "True"
    assert standing["NamesAccepted"] == "True"


def test_the_api_server_keeps_the_schema_as_committed(
    kubectl: Kubectl, copied_kind: CopiedKind
) -> None:
    """What it drops or defaults in the schema would be a difference for ever in GitOps."""
    kept = json.loads(kubectl("get", "crd", copied_kind.resource, "-o", "json"))
    committed = yaml.safe_load(CRD.read_text())

    assert kept["spec"]["versions"] == committed["spec"]["versions"]


def test_absent_fields_get_the_defaults_of_the_models(
    kubectl: Kubectl, copied_kind: CopiedKind
) -> None:
    """The scale subresource fails without spec.replicas, and kubectl shows what is in force."""
    made = kubectl(
        "create", "-f", "-", "-o", "json", "--dry-run=server",
        objects=(copied_kind.model("minimal", {**MINIMAL, "runtime": {}}),),
    )  # fmt: skip
    spec = json.loads(made)["spec"]

    assert spec["replicas"] == 1
    assert spec["model"]["maxNumSeqs"] == 256
    assert spec["accelerator"] == {
        **MINIMAL["accelerator"],
        "count": 1,
        "resourceName": "amd.com/gpu",
    }
    assert spec["runtime"]["sharedMemory"] == "8Gi"


@pytest.mark.parametrize(
    ("field", "section"),
    [
        ("spec.replica", {"replica": 2}),
        ("spec.objective", {"objective": "Latency"}),
        (
            "spec.runtime.securityContext.privileged",
            {"runtime": {"securityContext": {"privileged": True}}},
        ),
    ],
)
def test_an_unknown_field_is_refused(
    kubectl: Kubectl, copied_kind: CopiedKind, field: str, section: dict[str, Any]
) -> None:
    """A field that is silently dropped is a setting that silently does nothing."""
    answer = kubectl.attempt(
        "create", "-f", "-", "--dry-run=server",
        objects=(copied_kind.model("misspelt", {**MINIMAL, **section}),),
    )  # fmt: skip

    assert not answer.done
    assert f'unknown field "{field}"' in answer.complaint


def test_null_reads_as_absent(kubectl: Kubectl, copied_kind: CopiedKind) -> None:
    """Helm charts write null for a value that is not set."""
    spec = {**MINIMAL, "replicas": None, "speculation": {"method": "ngram", "draft": None}}
    made = kubectl(
        "create", "-f", "-", "-o", "json", "--dry-run=server",
        objects=(copied_kind.model("null", spec),),
    )  # fmt: skip

    assert json.loads(made)["spec"]["replicas"] == 1
    assert "draft" not in json.loads(made)["spec"]["speculation"]


def test_kubectl_get_shows_what_a_user_wants_to_know(
    kubectl: Kubectl, copied_kind: CopiedKind, namespace: str
) -> None:
    """Ready, mode, K, acceptance and speed-up at a glance, from the status as we write it."""
    kubectl("create", "-n", namespace, "-f", "-", objects=(copied_kind.model("qwen", MINIMAL),))
    status = ModelStatus(
        observed_generation=1,
        conditions=(
            Condition(
                type=ConditionType.READY,
                status=ConditionStatus.TRUE,
                reason=Reason.SERVING,
                message="2 of 2 replicas serve",
                observed_generation=1,
                last_transition_time="2026-08-23T10:00:00Z",
            ),
        ),
        replicas=2,
        mode=Mode.SPECULATIVE,
        proposal_length=3,
        evidence=Evidence(acceptance=0.7119, speedup=1.4249, acceptance_length=3.1357),
        revisions=Revisions(current="0123456789"),
    )
    kubectl(
        "patch", copied_kind.resource, "qwen", "-n", namespace, "--subresource=status",
        "--type=merge", "-p", json.dumps({"status": status.wire()}),
    )  # fmt: skip

    head, row = kubectl("get", copied_kind.resource, "-n", namespace).splitlines()
    assert head.split() == ["NAME", "READY", "MODE", "K", "ACCEPTANCE", "SPEEDUP", "AGE"]
    assert row.split()[:6] == ["qwen", "True", "Speculative", "3", "0.712", "1.42"]

    head, row = kubectl("get", copied_kind.resource, "-n", namespace, "-o", "wide").splitlines()
    wide = ["METHOD", "REPLICAS", "LENGTH", "TUNED", "REVISION", "WHY"]
    assert head.split()[7:] == wide
    assert row.split()[7:] == ["ngram", "2", "3.14", "0123456789", "Serving"]


def test_a_written_status_is_kept_whole(
    kubectl: Kubectl, copied_kind: CopiedKind, namespace: str
) -> None:
    """A field that the schema does not know would be pruned without a word."""
    kubectl("create", "-n", namespace, "-f", "-", objects=(copied_kind.model("kept", MINIMAL),))
    status = {
        "observedGeneration": 1,
        "evidence": {"positionAcceptance": ["0.810", "0.522"], "goodput": "312.5"},
        "schedule": [{"minBatch": 1, "maxBatch": 16, "proposalLength": 3}],
    }
    kubectl(
        "patch", copied_kind.resource, "kept", "-n", namespace, "--subresource=status",
        "--type=merge", "-p", json.dumps({"status": status}),
    )  # fmt: skip
    kept = json.loads(kubectl("get", copied_kind.resource, "kept", "-n", namespace, "-o", "json"))

    assert {key: kept["status"][key] for key in status} == status


def test_scale_sets_spec_replicas_and_reads_the_selector(
    kubectl: Kubectl, copied_kind: CopiedKind, namespace: str
) -> None:
    """/scale of the model is the only thing that an autoscaler targets."""
    kubectl("create", "-n", namespace, "-f", "-", objects=(copied_kind.model("scaled", MINIMAL),))
    status = {"observedGeneration": 1, "replicas": 1, "selector": "speculation.dev/model-uid=u"}
    kubectl(
        "patch", copied_kind.resource, "scaled", "-n", namespace, "--subresource=status",
        "--type=merge", "-p", json.dumps({"status": status}),
    )  # fmt: skip
    kubectl("scale", f"{copied_kind.resource}/scaled", "-n", namespace, "--replicas=3")
    path = f"/apis/{copied_kind.group}/{copied_kind.version}/namespaces/{namespace}"
    scale = json.loads(kubectl("get", "--raw", f"{path}/speculativemodels/scaled/scale"))

    assert scale["spec"]["replicas"] == 3
    assert scale["status"] == {"replicas": 1, "selector": status["selector"]}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("spec.speculation.proposalLength.capacity", "longest proposal that the engine is"),
        ("spec.tuning.minimumGainPercent", "Goodput that speculation must bring"),
        ("status.evidence.speedup", "Measured goodput over that of"),
    ],
)
def test_kubectl_explain_tells_what_a_field_means(
    kubectl: Kubectl, copied_kind: CopiedKind, path: str, words: str
) -> None:
    """Users read the reference with kubectl before they look for a page."""
    api = f"--api-version={copied_kind.group}/{copied_kind.version}"
    told = kubectl("explain", f"{copied_kind.resource.split('.')[0]}.{path}", api)

    assert words in " ".join(told.split())


def test_every_example_is_accepted(kubectl: Kubectl, copied_kind: CopiedKind) -> None:
    """Examples are what users start from."""
    documents = [each for path in EXAMPLES for each in yaml.safe_load_all(path.read_text())]
    objects = tuple(
        copied_kind.model(each["metadata"]["name"], each["spec"])
        if each["kind"] == copied_kind.kind
        else each
        for each in documents
    )

    assert len(objects) >= len(EXAMPLES) > 0
    kubectl("create", "-f", "-", "--dry-run=server", objects=objects)
