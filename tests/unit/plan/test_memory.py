"""What cannot fit into the GPUs is refused before a pod is started; what is tight is told."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.memory import refuse_what_cannot_fit, tightness
from speculative_operator.plan.model import key_of
from tests.unit.plan.builders import EAGLE3, a_model


def spec(
    weights: str | None, count: int = 1, *, draft: str | None = None, **sections: Any
) -> SpeculativeModelSpec:
    """On so many MI300X, of 192 GiB each."""
    drafted = {**EAGLE3, "draft": {"source": "hf://a/b", "weightsSize": draft}}
    made = {
        "accelerator": {"products": ["MI300X"], "count": count},
        "speculation": drafted,
        **sections,
        "model": {"weightsSize": weights, **sections.get("model", {})},
    }
    return a_model(**made).spec


@pytest.mark.parametrize(
    "fits",
    [
        spec(None),
        spec("140Gi"),
        spec("750Gi", 8),
        spec("140Gi", draft="30Gi"),
        spec("178Gi", runtime={"args": ["--gpu-memory-utilization=0.95"]}),
        spec("140Gi", model={"kvCachePerToken": "160Ki", "maxModelLen": 131_072}),
        spec("300Gi", 2, parallelism={"pipeline": 2}),
        spec("700Gi", 8, parallelism={"data": 8, "expert": True}),
        spec("300Gi", runtime={"args": ["--cpu-offload-gb=160"]}),
        spec("300Gi", runtime={"args": ["--cpu_offload_gb", "160"]}),
        spec("20Gi", accelerator={"products": ["MI300X"], "resourceName": "amd.com/cpx_nps1"}),
    ],
)
def test_what_fits_is_let_through(fits: SpeculativeModelSpec) -> None:
    """A check that refuses what runs would be worse than none."""
    refuse_what_cannot_fit(fits)


@pytest.mark.parametrize(
    ("too_large", "field"),
    [
        (spec("180Gi"), "spec.model.weightsSize"),
        (spec("1500Gi", 8), "0.92 of a MI300X"),
        (spec("300Gi", 2, parallelism={"data": 2}), "spec.accelerator.count"),
        (spec("140Gi", draft="40Gi"), "180.0 GiB of 176.6 GiB"),
        (spec("170Gi", runtime={"args": ["--gpu-memory-utilization", "0.8"]}), "0.8 of a MI300X"),
        (
            spec("100Gi", accelerator={"products": ["MI300X", "MI210"]}),
            "a MI210",
        ),
        (
            spec("30Gi", accelerator={"products": ["MI300X"], "resourceName": "amd.com/cpx_nps1"}),
            "22.1 GiB",
        ),
        (
            spec("140Gi", model={"kvCachePerToken": "400Ki", "maxModelLen": 131_072}),
            "Lower spec.model.maxModelLen",
        ),
        (
            spec(None, runtime={"resources": {"limits": {"memory": "8Gi"}}}),
            "spec.runtime.resources.limits.memory",
        ),
    ],
)
def test_what_cannot_fit_is_refused_with_what_to_change(
    too_large: SpeculativeModelSpec, field: str
) -> None:
    """Minutes of loading earlier than vLLM would say so."""
    with pytest.raises(ModelInvalid) as refusal:
        refuse_what_cannot_fit(too_large)
    assert field in str(refusal.value)


def test_a_draft_on_one_gpu_takes_all_of_its_room_there() -> None:
    """By `draftTensorParallelSize: 1`; else it is split like the target."""
    one = {"method": "eagle3", "options": {"draftTensorParallelSize": 1}}
    draft = {"source": "hf://a/b", "weightsSize": "100Gi"}

    refuse_what_cannot_fit(spec("1000Gi", 8, draft="100Gi"))
    with pytest.raises(ModelInvalid):
        refuse_what_cannot_fit(spec("1000Gi", 8, speculation={**one, "draft": draft}))


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (spec("160Gi"), "16.6 GiB are left"),
        (spec("300Gi"), "By the sizes in the spec it cannot fit"),
        (
            spec("100Gi", model={"kvCachePerToken": "400Ki", "maxModelLen": 131_072}),
            "50.0 GiB for the longest request",
        ),
        (spec("100Gi"), None),
        (spec(None), None),
    ],
)
def test_a_tight_plan_is_warned_about(of: SpeculativeModelSpec, told: str | None) -> None:
    """It runs, and requests wait for room in the KV cache."""
    found = tightness(of)

    assert (told is None) is (found is None)
    assert told is None or (found is not None and told in found)


def test_to_say_how_large_something_is_restarts_nothing() -> None:
    """It is knowledge about the pods, not a part of them."""
    draft = {**EAGLE3, "draft": {**EAGLE3["draft"], "weightsSize": "2Gi"}}  # type: ignore[dict-item]
    sized = a_model(model={"weightsSize": "16Gi", "kvCachePerToken": "128Ki"}, speculation=draft)

    assert key_of(sized) == key_of(a_model())
