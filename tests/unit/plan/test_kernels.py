"""Kernels that would kill or corrupt an engine after it has loaded for half an hour."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.kernels import refuse_impossible_kernels
from tests.unit.plan.builders import EAGLE3, a_model

AITER = {"env": [{"name": "VLLM_ROCM_USE_AITER", "value": "1"}]}
SHUFFLED = {"name": "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT", "value": "1"}


def check(**sections: Any) -> None:
    refuse_impossible_kernels(a_model(**sections).spec)


def backend(*args: str) -> dict[str, Any]:
    return {"runtime": {"args": list(args)}}


NEEDING_AITER = [
    {"runtime": AITER},
    backend("--attention-backend", "ROCM_AITER_FA"),
    backend("--attention-backend=ROCM_AITER_FA"),
    backend("--attention_backend=ROCM_AITER_FA"),
    backend("--seed=1", "--attention-config.backend", "ROCM_AITER_UNIFIED_ATTN"),
    backend("--attention-backend=rocm_aiter_fa"),
    {"speculation": {**EAGLE3, "options": {"attentionBackend": "ROCM_AITER_FA"}}},
]


@pytest.mark.parametrize("product", ["MI210", "MI250X"])
@pytest.mark.parametrize("sections", NEEDING_AITER, ids=str)
def test_aiter_is_refused_where_it_does_not_exist(sections: dict[str, Any], product: str) -> None:
    """Any of the listed products may be what the pod gets."""
    with pytest.raises(ModelInvalid, match=f"gfx942 and gfx950 only, and {product} is neither"):
        check(accelerator={"products": ["MI300X", product]}, **sections)


@pytest.mark.parametrize("product", ["MI300A", "MI300X", "MI308X", "MI325X", "MI350X", "MI355X"])
@pytest.mark.parametrize("sections", NEEDING_AITER, ids=str)
def test_aiter_is_accepted_where_it_exists(sections: dict[str, Any], product: str) -> None:
    """The neighbour; it stays the user's choice, as vLLM leaves it off."""
    check(accelerator={"products": [product]}, **sections)


@pytest.mark.parametrize(
    "runtime",
    [
        {},
        {"env": [{"name": "VLLM_ROCM_USE_AITER", "value": "0"}]},
        {"args": ["--attention-backend", "TRITON_ATTN"]},
    ],
    ids=str,
)
def test_older_gpus_run_what_does_not_need_it(runtime: dict[str, Any]) -> None:
    """The other neighbour."""
    check(accelerator={"products": ["MI210"]}, runtime=runtime)


@pytest.mark.parametrize("product", ["MI350X", "MI355X"])
@pytest.mark.parametrize("name", ["ROCM_AITER_MLA", "rocm_aiter_mla"])
def test_aiters_mla_is_refused_on_cdna_4(name: str, product: str) -> None:
    """Its kernel faults there (recipes#926), minutes into serving."""
    runtime = {"args": ["--attention-backend", name]}

    with pytest.raises(ModelInvalid, match=rf"gfx950 \({product}\). Choose TRITON_MLA"):
        check(accelerator={"products": ["MI300X", product]}, runtime=runtime)
    check(accelerator={"products": ["MI300X"]}, runtime=runtime)
    check(accelerator={"products": [product]}, runtime={"args": ["--attention-backend=TRITON_MLA"]})


def test_a_shuffled_cache_is_refused_with_speculation_on_aiters_attention() -> None:
    """The backend asserts at the first step that verifies more than one token."""
    runtime = {"env": [SHUFFLED], "args": ["--attention-backend=ROCM_AITER_FA"]}

    with pytest.raises(ModelInvalid, match="Set it to 0, or choose TRITON_ATTN"):
        check(runtime=runtime)
    check(runtime=runtime, speculation={"method": "none"})
    check(runtime={**runtime, "args": ["--attention-backend=TRITON_ATTN"]})
