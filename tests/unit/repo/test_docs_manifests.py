"""The manifests of the pages are such as a cluster takes."""

from __future__ import annotations

from itertools import chain
from typing import Any

import jsonschema
import pytest
import yaml

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.schema import custom_resource_definition
from tests.support.doc_manifests import OWN, VALUES, Written, written, yaml_blocks
from tests.support.helm import render
from tests.support.pages import Block
from tools.golden import UID, manifests
from tools.validate import complaint, supported

FOREIGN = frozenset(
    {"amd.com", "argoproj.io", "gateway.networking.k8s.io", "keda.sh", "monitoring.coreos.com"}
    | {"serving.kserve.io"}
)
"""API groups of other projects, whose schemas are not here; Flux's are `*.fluxcd.io`."""

ALL = tuple(written())
SCHEMA = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def strange_fields(schema: Any, value: Any, where: str = "") -> list[str]:
    """Where a value has fields that the schema does not know: the API server would drop them."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [*chain.from_iterable(strange_fields(items, entry, where) for entry in value)]
    known = schema.get("properties")
    if not isinstance(value, dict) or known is None:
        return []
    strange = [f"{where}.{name}" for name in value if name not in known]
    inner = (
        strange_fields(known[name], value[name], f"{where}.{name}")
        for name in value
        if name in known
    )
    return [*strange, *chain.from_iterable(inner)]


@pytest.mark.parametrize("found", [f for f in ALL if f.manifest["kind"] == OWN], ids=str)
def test_a_model_of_a_page_is_taken_by_the_schema_and_by_the_operator(found: Written) -> None:
    """What the CRD refuses, and what only the operator sees."""
    given = {"namespace": "default", "uid": UID, "generation": 1}
    metadata = {**given, **found.manifest["metadata"]}
    model = SpeculativeModel.model_validate({**found.manifest, "metadata": metadata})

    assert found.manifest.keys() == {"apiVersion", "kind", "metadata", "spec"}
    jsonschema.validate({"spec": found.manifest["spec"]}, SCHEMA)
    assert not strange_fields(SCHEMA["properties"]["spec"], found.manifest["spec"])
    assert [manifest["kind"] for manifest in manifests(model)].count("Deployment") == 1


@pytest.mark.parametrize("found", [f for f in ALL if f.manifest["kind"] != OWN], ids=str)
def test_another_object_of_a_page_agrees_with_its_schema(found: Written) -> None:
    """Kubernetes' own kinds strictly; of other projects at least what every object has."""
    group = found.manifest["apiVersion"].rpartition("/")[0]
    if group in FOREIGN or group.endswith(".fluxcd.io"):
        assert {"apiVersion", "kind", "metadata", "spec"} <= set(found.manifest)
        assert found.manifest["metadata"]["name"]
    else:
        assert complaint(found.manifest, supported()[-1]) is None


@pytest.mark.parametrize("block", [b for b in yaml_blocks() if b.mark == VALUES], ids=str)
def test_values_of_a_page_are_taken_by_the_chart(block: Block) -> None:
    """Its schema refuses what it does not know."""
    answer = render(**yaml.safe_load(block.text))

    assert answer.done, answer.complaint


def test_a_wrong_field_is_found() -> None:
    """A check that finds nothing must be known to find something."""
    spec = SCHEMA["properties"]["spec"]

    assert strange_fields(spec, {"runtime": {"env": [{"nmae": "x"}]}}) == [".runtime.env.nmae"]
    assert not strange_fields(spec, {"runtime": {"podTemplate": {"spec": {"any": 1}}}})
