"""Equal keys mean that no pod is replaced; so every line here is about GPUs that keep serving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel, Field
from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from speculative_operator.api.model import ModelSpec
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.plan import key_defaults, revision
from speculative_operator.plan.model import key_of
from speculative_operator.plan.revision import POD_SHAPING, revision_key
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
        {"tuning": {"objective": "Latency", "maxThroughputLossPercent": 3}},
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
    """The API server writes defaults into the stored object; a dry run does not. These are the
    first ones that it wrote, and stay here as they are whatever the defaults of today."""
    written = a_model(
        model={"maxNumSeqs": 256, "dtype": "auto", "trustRemoteCode": False},
        speculation={**EAGLE3, "proposalLength": {"capacity": 7}, "options": {}},
        accelerator={"products": ["MI300X"], "count": 1, "resourceName": "amd.com/gpu"},
        parallelism={"pipeline": 1, "data": 1, "expert": False},
        runtime={
            "imagePullPolicy": "IfNotPresent",
            "sharedMemory": "8Gi",
            "securityContext": {
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "runAsNonRoot": True,
                "readOnlyRootFilesystem": False,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "startupTimeoutSeconds": 1800,
            "drainSeconds": 120,
            "env": [],
        },
    )

    assert key_of(written) == "8ced338bce"


def test_a_default_in_the_entry_of_a_list_rolls_nothing() -> None:
    """They are stored like all others."""

    def tolerating(**toleration: str) -> str:
        return key_of(a_model(accelerator={"products": ["MI300X"], "tolerations": [toleration]}))

    assert tolerating(key="a", operator="Exists") == tolerating(key="a")
    assert tolerating(key="a", operator="Equal") != tolerating(key="a")


def list_default(monkeypatch: pytest.MonkeyPatch, path: str, *so_far: Any) -> None:
    """As a later release lists it."""
    listed = {**key_defaults.DEFAULTS_SO_FAR, path: so_far}
    monkeypatch.setattr(revision, "DEFAULTS_SO_FAR", listed)


def test_a_new_field_with_a_default_rolls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CRD upgrade brings new fields, and the API server fills them in for every model."""
    list_default(monkeypatch, "model.sleepLevel", 1)

    class NewerModel(ModelSpec):
        sleep_level: int = Field(default=1)

    class NewerSpec(SpeculativeModelSpec):
        model: NewerModel

    spec = a_model().spec
    stored = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    stored["model"]["sleepLevel"] = 1
    newer = NewerSpec.model_validate(stored)

    old, new = (revision_key(s, None) for s in (spec, newer))
    assert old == new


def test_a_default_changed_by_a_later_release_rolls_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The API server wrote the old default into the stored object, or nothing where the section was
    not written: neither asked for other pods."""
    list_default(monkeypatch, "model.maxNumSeqs", 256, 512)

    class NewerModel(ModelSpec):
        max_num_seqs: int = 512

    class NewerSpec(SpeculativeModelSpec):
        model: NewerModel

    def newer(**model: int) -> str:
        spec = a_model(model=model).spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return revision_key(NewerSpec.model_validate(spec), None)

    assert newer(maxNumSeqs=256) == newer() == key_of(a_model())
    assert newer(maxNumSeqs=512) != key_of(a_model())


def defaults_of(model: type[BaseModel], wanted: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Path and JSON of every default but None and nothing, as far as `wanted` includes a field."""
    for name, field in model.model_fields.items():
        if wanted is not True and name not in wanted:
            continue
        path = f"{at}.{to_camel(name)}".removeprefix(".")
        inner, entries = inner_model(field.annotation)
        if inner is not None:
            inside = True if wanted is True else wanted[name]
            yield from defaults_of(inner, inside, path + entries)
        elif not field.is_required():
            default = to_jsonable_python(field.get_default(call_default_factory=True))
            if default not in (None, [], {}):
                yield path, default


def inner_model(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The model in an annotation, and `[]` where it is the entry of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    is_list = get_origin(annotation) is tuple
    found = [inner_model(each) for each in get_args(annotation)]
    model, entries = next((each for each in found if each[0] is not None), (None, ""))
    return model, entries + ("[]" if is_list else "")


def test_every_default_of_today_is_listed_for_the_key() -> None:
    """A field's default changed in api/: add the new one behind the old ones, and never take the
    first one away, since it is what the key of every running model leaves out."""
    today = dict(defaults_of(SpeculativeModelSpec, POD_SHAPING))

    assert today == {at: so_far[-1] for at, so_far in key_defaults.DEFAULTS_SO_FAR.items()}


def test_a_new_refresh_is_a_new_revision() -> None:
    """It is how a user takes over the operator's settings of today, or tries a bad key again."""
    refreshed = {"speculation.dev/refresh": "2026-09-01"}

    assert key_of(a_model(annotations=refreshed)) != key_of(a_model())


def test_other_annotations_roll_nothing() -> None:
    """Everybody annotates."""
    assert key_of(a_model(annotations={"team": "a"})) == key_of(a_model())
