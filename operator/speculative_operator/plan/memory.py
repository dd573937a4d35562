"""Whether weights and KV cache fit into the GPUs, where their sizes are known. Pure.

vLLM takes a share of each GPU's memory (`--gpu-memory-utilization`). Weights are split over the
tensor and pipeline parallel GPUs, a draft's over the tensor parallel ones or on one. What is left
is for activations, graphs and the KV cache, and vLLM refuses to start unless one request of the
longest length fits in.

There is no plan where weights lie elsewhere: with expert and data parallelism the experts are split
over the GPUs of all engines, and --cpu-offload-gb keeps some in main memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from speculative_operator.api.quantities import GIB, amount
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.products import ACCELERATORS

DEFAULT_SHARE = Fraction(92, 100)
"""vLLM's default of gpu_memory_utilization (0.33)."""

TIGHT_SHARE = Fraction(1, 10)
"""Of a GPU's memory: with less beside the weights few requests fit in, beside the graphs."""

TIGHT_REQUESTS = 2
"""With room for fewer of the longest length, requests wait for each other."""

PARTS = {"spx": 1, "dpx": 2, "qpx": 4, "cpx": 8}
"""Devices that a GPU is split into, by the compute partition in a resource's name."""

UTILIZATION = "--gpu-memory-utilization"
CPU_OFFLOAD = "--cpu-offload-gb"


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on each GPU of a replica; `request` is the longest request's KV cache, if known."""

    product: str
    share: Fraction
    usable: Fraction
    weights: Fraction
    request: Fraction | None

    @property
    def left(self) -> Fraction:
        return self.usable - self.weights

    def __str__(self) -> str:
        return (
            f"weights take {_gib(self.weights)} of {_gib(self.usable)} on each GPU "
            f"({float(self.share):g} of a {self.product})"
        )


def refuse_what_cannot_fit(spec: SpeculativeModelSpec) -> None:
    """Raises ModelInvalid, with what to change."""
    _refuse_shared_memory(spec)
    plan = memory_plan(spec)
    if plan is None:
        return
    if plan.left <= 0:
        raise ModelInvalid(
            f"spec.model.weightsSize: {plan}: they do not fit. Raise "
            "spec.accelerator.count, choose a product with more memory, or use quantized weights."
        )
    if plan.request is not None and plan.request > plan.left:
        raise ModelInvalid(
            f"spec.model.maxModelLen: {plan}, and {_gib(plan.left)} are left; the KV cache of one "
            f"request of {spec.model.max_model_len} tokens takes {_gib(plan.request)}. Lower "
            "spec.model.maxModelLen, or raise spec.accelerator.count."
        )


def tightness(spec: SpeculativeModelSpec) -> str | None:
    """Why memory is tight, and what would help; None where it is not, or sizes are not known."""
    plan = memory_plan(spec)
    if plan is None:
        return None
    if plan.left <= 0:
        return (
            f"By the sizes in the spec it cannot fit: {plan}. What runs was started before they "
            "were written; check spec.model.weightsSize, since a new revision is refused by it."
        )
    few = plan.request is not None and plan.left < TIGHT_REQUESTS * plan.request
    if not few and plan.left >= TIGHT_SHARE * plan.usable / plan.share:
        return None
    length = f", {_gib(plan.request)} for the longest request" if plan.request is not None else ""
    return (
        f"Memory is tight: {plan}, and {_gib(plan.left)} are left for the KV cache{length}. "
        "More GPUs, quantized weights or a smaller spec.model.maxModelLen give more room."
    )


def memory_plan(spec: SpeculativeModelSpec) -> MemoryPlan | None:
    """On the product with least memory, as any may be chosen; None without the weights' size, or
    where they do not lie in each engine's own GPUs alone."""
    target = _bytes(spec.model.weights_size)
    parallel = spec.parallelism
    elsewhere = (parallel.expert and parallel.data > 1) or bool(_given(spec, CPU_OFFLOAD))
    if target is None or elsewhere:
        return None
    engines = parallel.pipeline * parallel.data
    tensor = parallel.tensor or max(1, spec.accelerator.count // engines)
    draft = _bytes(spec.speculation.draft.weights_size) if spec.speculation.draft else None
    drafting = spec.speculation.options.draft_tensor_parallel_size or tensor
    product = min(spec.accelerator.products, key=lambda each: ACCELERATORS[each].memory)
    memory = Fraction(ACCELERATORS[product].memory * GIB, _parts(spec.accelerator.resource_name))
    share = _share(spec)
    per_token = _bytes(spec.model.kv_cache_per_token)
    length = spec.model.max_model_len
    return MemoryPlan(
        product=product.value,
        share=share,
        usable=memory * share,
        weights=target / (tensor * parallel.pipeline) + (draft or Fraction()) / drafting,
        request=per_token * length if per_token is not None and length is not None else None,
    )


def _refuse_shared_memory(spec: SpeculativeModelSpec) -> None:
    """What lies in /dev/shm counts as the container's memory."""
    limit = _bytes(spec.runtime.resources.limits.get("memory"))
    shared = _bytes(spec.runtime.shared_memory)
    if limit is not None and shared is not None and shared >= limit:
        raise ModelInvalid(
            f"spec.runtime.sharedMemory: {spec.runtime.shared_memory} count as memory of the "
            f"container, whose limit is {spec.runtime.resources.limits['memory']}. Raise "
            "spec.runtime.resources.limits.memory, or lower sharedMemory."
        )


def _share(spec: SpeculativeModelSpec) -> Fraction:
    given = _given(spec, UTILIZATION)
    found = amount(given[-1]) if given else None
    return found or DEFAULT_SHARE


def _given(spec: SpeculativeModelSpec, flag: str) -> list[str]:
    """The values of an argument; vLLM takes the last one."""
    words = [word for argument in spec.runtime.args for word in argument.split("=", 1)]
    return [value for word, value in pairwise(words) if word.replace("_", "-") == flag]


def _parts(resource: str) -> int:
    return PARTS.get(resource.removeprefix("amd.com/").split("_")[0], 1)


def _bytes(quantity: str | None) -> Fraction | None:
    return amount(quantity) if quantity is not None else None


def _gib(size: Fraction) -> str:
    return f"{float(size / GIB):.1f} GiB"
