"""From a spec to everything that its pods need: pure, and the same for equal input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speculative_operator.api import defaults
from speculative_operator.api.names import ANNOTATION_REFRESH
from speculative_operator.api.resource import SpeculativeModel, SpeculativeModelSpec
from speculative_operator.api.runtime import RuntimeSpec
from speculative_operator.api.speculation import Method
from speculative_operator.plan import overlay, sameness, weights
from speculative_operator.plan.arguments import arguments, speculative_config
from speculative_operator.plan.environment import Variable, environment
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.plan.kernels import refuse_impossible_kernels
from speculative_operator.plan.memory import refuse_what_cannot_fit
from speculative_operator.plan.names import Owner
from speculative_operator.plan.placement import Placement, placement
from speculative_operator.plan.revision import revision_key
from speculative_operator.plan.schedule import (
    base_table,
    needs_schedule,
    start_table,
)
from speculative_operator.plan.settings import Settings
from speculative_operator.plan.weights import ClaimMount
from speculative_operator.tuning.variant import Variant


@dataclass(frozen=True)
class Gpus:
    """The extended resource of one replica; requests equal limits."""

    resource_name: str
    count: int


@dataclass(frozen=True)
class EnginePlan:
    """One revision of a model, before it is written down as manifests."""

    owner: Owner
    generation: int
    key: str
    facts: RevisionFacts
    engine_image: str
    settings: Settings
    arguments: tuple[str, ...]
    environment: tuple[Variable, ...]
    mounts: tuple[ClaimMount, ...]
    gpus: Gpus
    placement: Placement
    runtime: RuntimeSpec


def key_of(
    model: SpeculativeModel,
    variant: Variant = Variant.SPECULATIVE,
    left_out: Sequence[str] = (),
) -> str:
    """The key of the revision that `model` asks for."""
    refresh = model.metadata.annotations.get(ANNOTATION_REFRESH)
    return revision_key(model.spec, refresh, variant, left_out)


def without(spec: SpeculativeModelSpec, left_out: Sequence[str]) -> SpeculativeModelSpec:
    """The spec without some options of speculation, given by vLLM's names."""
    options = spec.speculation.options.model_copy(update=dict.fromkeys(left_out))
    speculation = spec.speculation.model_copy(update={"options": options})
    return spec.model_copy(update={"speculation": speculation})


def plan(
    model: SpeculativeModel,
    settings: Settings,
    variant: Variant = Variant.SPECULATIVE,
    left_out: Sequence[str] = (),
) -> EnginePlan:
    """The revision that `model` asks for. Raises ModelInvalid where it asks for what cannot be.

    The autoregressive variant is the same without speculation in the arguments, and so without the
    draft's weights. A reduced one leaves some options of speculation out.
    """
    spec = without(model.spec, left_out)
    speculates = variant is Variant.SPECULATIVE and spec.speculation.method is not Method.NONE
    overlay.check(spec.runtime.pod_template)
    refuse_impossible_kernels(spec)
    refuse_what_cannot_fit(spec)
    scheduled = speculates and needs_schedule(spec)
    config = None
    if speculates:
        table = start_table(base_table(spec), defaults.choices(spec)) if scheduled else None
        config = speculative_config(spec, table)
    located = (weights.target(spec), weights.draft(spec) if config is not None else None)
    return EnginePlan(
        owner=Owner.of(model),
        generation=model.metadata.generation,
        key=key_of(model, variant, left_out),
        facts=RevisionFacts(
            method=spec.speculation.method,
            schedule=scheduled,
            capacity=spec.speculation.proposal_length.capacity,
            initial=defaults.initial_length(spec),
            choices=defaults.choices(spec),
            max_num_seqs=spec.model.max_num_seqs,
            served_names=defaults.served_names(model),
            startup_seconds=spec.runtime.startup_timeout_seconds,
            stands_in_for=None if variant is Variant.SPECULATIVE else key_of(model),
            target=sameness.target(spec),
            hardware=sameness.hardware(spec),
            reduced_from=key_of(model) if left_out else None,
            left_out=tuple(sorted(left_out)) or None,
        ),
        engine_image=spec.runtime.image or settings.engine_image,
        settings=settings,
        arguments=arguments(model, config),
        environment=environment(spec),
        mounts=tuple(found.mount for found in located if found is not None and found.mount),
        gpus=Gpus(spec.accelerator.resource_name, spec.accelerator.count),
        placement=placement(spec.accelerator),
        runtime=spec.runtime,
    )
