"""Kernels that the GPU or speculation cannot run: refused before a pod has loaded a model for them.

vLLM starts with each of these and dies, or answers wrongly, at the first request. What needs no
look beyond one section of the spec is refused by its CEL rules (`api.options`, `api.speculation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.api.speculation import Method
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.products import ACCELERATORS

BACKEND_FLAGS = ("--attention-backend", "--attention-config.backend")
SHUFFLED_LAYOUT = "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT"
AITER_SWITCH = "VLLM_ROCM_USE_AITER"
AITER_BACKENDS = "ROCM_AITER_"
AITER_MLA = "ROCM_AITER_MLA"
AITER_MLA_SWITCH = "VLLM_ROCM_USE_AITER_MLA"
FAULTY_MLA = "gfx950"
"""Architecture on which AITER_MLA faults (vllm-project/recipes#926)."""


def refuse_impossible_kernels(spec: SpeculativeModelSpec) -> None:
    """Raises ModelInvalid with the first reason, most telling first."""
    for check in CHECKS:
        reason = check(spec)
        if reason is not None:
            raise ModelInvalid(reason)


def safe_choices(spec: SpeculativeModelSpec) -> Mapping[str, str]:
    """Variables that keep vLLM from choosing by itself what is refused when it is written.

    With AITER on, vLLM takes AITER_MLA for every model with latent attention, and TRITON_MLA with
    the switch off; other models do not look at it (read in `vllm.platforms.rocm` of 0.32).
    """
    return {AITER_MLA_SWITCH: "0"} if _with_faulty_mla(spec) else {}


def _with_faulty_mla(spec: SpeculativeModelSpec) -> list[str]:
    return [p.value for p in spec.accelerator.products if ACCELERATORS[p].gfx == FAULTY_MLA]


def _aiter_without_its_gpu(spec: SpeculativeModelSpec) -> str | None:
    without = [p.value for p in spec.accelerator.products if not ACCELERATORS[p].has_aiter]
    needs = next(iter(_needs_aiter(spec)), None)
    if not without or needs is None:
        return None
    return (
        f"{needs} needs AITER's kernels, which exist for gfx942 and gfx950 only, and "
        f"{', '.join(without)} is neither. Leave it out, or take {', '.join(without)} out of "
        f"spec.accelerator.products."
    )


def _shuffled_cache_of_several_tokens(spec: SpeculativeModelSpec) -> str | None:
    speculative = spec.speculation.method is not Method.NONE
    if speculative and _is_on(spec, SHUFFLED_LAYOUT) and "ROCM_AITER_FA" in _backends(spec):
        return (
            f"spec.runtime.env: {SHUFFLED_LAYOUT}=1 does not work with ROCM_AITER_FA and several "
            f"tokens a step, which is what speculation is. Set it to 0, or choose TRITON_ATTN."
        )
    return None


def _aiter_mla_on_cdna4(spec: SpeculativeModelSpec) -> str | None:
    faulty = _with_faulty_mla(spec)
    if not faulty or AITER_MLA not in _backends(spec):
        return None
    return (
        f"attention backend {AITER_MLA} faults on {FAULTY_MLA} ({', '.join(faulty)}). "
        f"Choose TRITON_MLA, or take {', '.join(faulty)} out of spec.accelerator.products."
    )


CHECKS: tuple[Callable[[SpeculativeModelSpec], str | None], ...] = (
    _aiter_without_its_gpu,
    _aiter_mla_on_cdna4,
    _shuffled_cache_of_several_tokens,
)


def _needs_aiter(spec: SpeculativeModelSpec) -> Iterator[str]:
    if _is_on(spec, AITER_SWITCH):
        yield f"spec.runtime.env: {AITER_SWITCH}=1"
    for backend in _backends(spec):
        if backend.startswith(AITER_BACKENDS):
            yield f"attention backend {backend}"


def _is_on(spec: SpeculativeModelSpec, name: str) -> bool:
    values = [variable.value or "" for variable in spec.runtime.env if variable.name == name]
    return any(value.lower() in {"1", "true"} for value in values)


def _backends(spec: SpeculativeModelSpec) -> tuple[str, ...]:
    """Attention backends that are asked for, in upper case: the target's, then the draft's."""
    words = [word for argument in spec.runtime.args for word in argument.split("=", 1)]
    target = [value for flag, value in pairwise(words) if flag.replace("_", "-") in BACKEND_FLAGS]
    draft = spec.speculation.options.attention_backend
    return tuple(name.upper() for name in (*target, draft) if name is not None)
