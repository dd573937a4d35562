"""Equal keys mean that no pod is replaced; so every line here is about GPUs that keep serving."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from speculative_operator.api.model import ModelSpec
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.plan.model import key_of
from speculative_operator.plan.revision import Variant, revision_key
from tests.unit.plan.builders import EAGLE3, a_model

LENGTHS = {"capacity": 7, "choices": [1, 2, 3, 5, 7]}


def with_runtime(**runtime: Any) -> str:
    return key_of(a_model(runtime=runtime))


def test_the_key_is_ten_hex_digits() -> None:
    """It is part of names and labels."""
    key = key_of(a_model())

    assert len(key) == 10
    assert int(key, 16) >= 0


def test_the_key_of_a_known_model_never_changes() -> None:
    """A refactoring that changes keys would replace every pod at the operator's next upgrade."""
    assert key_of(a_model()) == "8ced338bce"


@pytest.mark.parametrize(
    "live",
    [
        {"replicas": 5},
        {"tuning": {"mode": "Off"}},
        {"tuning": {"bounds": {"min": 1, "max": 3}}},
        {"tuning": {"minimumGainPercent": 20, "trialSharePercent": 0}},
        {"service": {"type": "NodePort", "port": 8080}},
        {"rollout": {"strategy": "Surge"}},
        {"speculation": {**EAGLE3, "proposalLength": {"initial": 3}}},
        {
            "speculation": {
                **EAGLE3,
                "proposalLength": {
                    "perBatch": [{"minBatch": 1, "maxBatch": 64, "proposalLength": 3}]
                },
            }
        },
    ],
    ids=str,
)
def test_what_is_live_rolls_nothing(live: dict[str, Any]) -> None:
    """These change the running engines, or nothing inside of the pods at all."""
    assert key_of(a_model(**live)) == key_of(a_model())


@pytest.mark.parametrize(
    "section",
    [
        {"model": {"maxNumSeqs": 64}},
        {"model": {"revision": "v2"}},
        {"model": {"servedNames": ["other"]}},
        {"speculation": {"method": "ngram"}},
        {"speculation": {**EAGLE3, "draft": {"source": "hf://other/head"}}},
        {"speculation": {**EAGLE3, "proposalLength": {"capacity": 5}}},
        {"speculation": {**EAGLE3, "proposalLength": {"choices": [3, 7]}}},
        {"speculation": {**EAGLE3, "options": {"attentionBackend": "TRITON_ATTN"}}},
        {"accelerator": {"products": ["MI355X"]}},
        {"accelerator": {"products": ["MI300X"], "count": 2}},
        {"parallelism": {"expert": True}},
        {"runtime": {"image": "vllm:other"}},
        {"runtime": {"args": ["--enable-prefix-caching"]}},
        {"runtime": {"env": [{"name": "A", "value": "1"}]}},
        {"runtime": {"podTemplate": {"metadata": {"labels": {"team": "a"}}}}},
    ],
    ids=str,
)
def test_what_shapes_a_pod_makes_a_new_revision(section: dict[str, Any]) -> None:
    """The neighbour of the test above: a change that needs a restart must not be lost."""
    assert key_of(a_model(**section)) != key_of(a_model())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"accelerator": {"products": ["MI300X", "MI325X"]}},
            {"accelerator": {"products": ["MI325X", "MI300X"]}},
        ),
        (
            {"speculation": {**EAGLE3, "proposalLength": {"choices": [1, 3, 7]}}},
            {"speculation": {**EAGLE3, "proposalLength": {"choices": [7, 1, 3]}}},
        ),
        (
            {"runtime": {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}},
            {"runtime": {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}},
        ),
        (
            {"runtime": {"supplementalGroups": [44, 110]}},
            {"runtime": {"supplementalGroups": [110, 44]}},
        ),
        (
            {"accelerator": {"products": ["MI300X"], "tolerations": [{"key": "a"}, {"key": "b"}]}},
            {"accelerator": {"products": ["MI300X"], "tolerations": [{"key": "b"}, {"key": "a"}]}},
        ),
        (
            {"runtime": {"resources": {"limits": {"cpu": "4", "memory": "64Gi"}}}},
            {"runtime": {"resources": {"limits": {"memory": "64Gi", "cpu": "4"}}}},
        ),
    ],
    ids=["products", "choices", "env", "groups", "tolerations", "limits"],
)
def test_another_order_of_a_set_rolls_nothing(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Tools that write the resource back often sort its lists."""
    assert key_of(a_model(**one)) == key_of(a_model(**other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            {"runtime": {"args": ["--a=1", "--b=2"]}},
            {"runtime": {"args": ["--b=2", "--a=1"]}},
        ),
        (
            {"model": {"servedNames": ["main", "alias"]}},
            {"model": {"servedNames": ["alias", "main"]}},
        ),
    ],
    ids=["args", "served names"],
)
def test_an_order_that_means_something_counts(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The last of two equal arguments wins, and the first served name is what answers tell."""
    assert key_of(a_model(**one)) != key_of(a_model(**other))


def test_a_default_written_out_rolls_nothing() -> None:
    """The API server writes defaults into the stored object; a dry run does not."""
    written = a_model(
        model={"maxNumSeqs": 256, "dtype": "auto", "trustRemoteCode": False},
        speculation={**EAGLE3, "proposalLength": {"capacity": 7}, "options": {}},
        parallelism={"pipeline": 1, "data": 1, "expert": False},
        runtime={"sharedMemory": "8Gi", "securityContext": {"runAsUser": 1000}, "env": []},
    )

    assert key_of(written) == key_of(a_model())


def test_a_new_field_with_a_default_rolls_nothing() -> None:
    """A CRD upgrade brings new fields, and the API server fills them in for every model."""

    class NewerModel(ModelSpec):
        sleep_level: int = Field(default=1)

    class NewerSpec(SpeculativeModelSpec):
        model: NewerModel

    spec = a_model().spec
    stored = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    stored["model"]["sleepLevel"] = 1
    newer = NewerSpec.model_validate(stored)

    old, new = (revision_key(s, Variant.SPECULATIVE, None) for s in (spec, newer))
    assert old == new


def test_the_variants_are_two_revisions() -> None:
    """Plain decoding at its true speed needs pods of its own."""
    model = a_model()

    assert key_of(model, Variant.AUTOREGRESSIVE) != key_of(model)


def test_a_new_refresh_is_a_new_revision() -> None:
    """It is how a user takes over the operator's settings of today, or tries a bad key again."""
    refreshed = {"speculation.dev/refresh": "2026-09-01"}

    assert key_of(a_model(annotations=refreshed)) != key_of(a_model())


def test_other_annotations_roll_nothing() -> None:
    """Everybody annotates."""
    assert key_of(a_model(annotations={"team": "a"})) == key_of(a_model())
