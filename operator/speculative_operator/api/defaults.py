"""What a spec means where it leaves something open. Pure functions, one home for each default."""

from __future__ import annotations

from speculative_operator.api.proposal import (
    BLOCK_CHOICES,
    LONGEST_DEFAULT_START,
    SEQUENTIAL_CHOICES,
)
from speculative_operator.api.resource import SpeculativeModel, SpeculativeModelSpec
from speculative_operator.api.speculation import BLOCK_DRAFTERS, Method


def choices(spec: SpeculativeModelSpec) -> tuple[int, ...]:
    """Proposal lengths above 0 that the engine is prepared for, ascending; () for method none.

    They are fixed when an engine starts (vLLM captures graphs for these only), so they depend on
    method, capacity and the listed choices alone. Unlisted, they are the usual lengths up to the
    capacity, and the capacity itself.
    """
    speculation = spec.speculation
    if speculation.method is Method.NONE:
        return ()
    lengths = speculation.proposal_length
    if lengths.choices is not None:
        return tuple(sorted(lengths.choices))
    usual = BLOCK_CHOICES if speculation.method in BLOCK_DRAFTERS else SEQUENTIAL_CHOICES
    return tuple(sorted({k for k in usual if k <= lengths.capacity} | {lengths.capacity}))


def initial_length(spec: SpeculativeModelSpec) -> int:
    """What a new engine starts with: 0 for method none, else one of `choices`.

    Unlisted, the longest choice up to 7, or the shortest one when all are longer: the price of
    switching speculation on can dominate, so a start at 1 may look like a loss where 6 wins.
    """
    allowed = choices(spec)
    if not allowed:
        return 0
    wanted = spec.speculation.proposal_length.initial
    if wanted is not None:
        return wanted
    return max((k for k in allowed if k <= LONGEST_DEFAULT_START), default=allowed[0])


def tensor_size(spec: SpeculativeModelSpec) -> int:
    """GPUs that one layer is split over: what the count leaves after pipeline and data."""
    split = spec.parallelism
    if split.tensor is not None:
        return split.tensor
    return spec.accelerator.count // (split.pipeline * split.data)


def served_names(model: SpeculativeModel) -> tuple[str, ...]:
    """Names that requests may use, the first one is the main name; never empty."""
    return model.spec.model.served_names or (model.metadata.name,)
