"""`SpeculativeModel`: the whole resource as the operator reads it, with rules across sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from speculative_operator.api.base import ApiModel, Rule, Why, rules
from speculative_operator.api.exposure import RolloutSpec, ServiceSpec
from speculative_operator.api.hardware import AcceleratorSpec, ParallelismSpec
from speculative_operator.api.model import ModelSpec
from speculative_operator.api.runtime import RuntimeSpec
from speculative_operator.api.speculation import SpeculationSpec, choices_in
from speculative_operator.api.tuning import TuningMode, TuningSpec

_CAPACITY, _CHOICES = choices_in("self.speculation")
_PIPELINE = "self.?parallelism.?pipeline.orValue(1)"
_DATA = "self.?parallelism.?data.orValue(1)"
_COUNT = "self.accelerator.count"
_PRODUCT = f"self.parallelism.tensor * {_PIPELINE} * {_DATA}"
_BOUNDS = "has(self.tuning) && has(self.tuning.bounds)"
_MIN = "self.tuning.bounds.?min.orValue(0)"
_MAX = f"self.tuning.bounds.?max.orValue({_CAPACITY})"
_DRAFT_GPUS = "self.speculation.options.draftTensorParallelSize"

PARALLELISM_RULES = (
    Rule(
        f"!has(self.parallelism) || !has(self.parallelism.tensor) || {_PRODUCT} == {_COUNT}",
        "tensor %d x pipeline %d x data %d is %d, but accelerator.count is %d: make them equal, or "
        "leave tensor out",
        ("self.parallelism.tensor", _PIPELINE, _DATA, _PRODUCT, _COUNT),
        field=".parallelism",
    ),
    Rule(
        "(has(self.parallelism) && has(self.parallelism.tensor)) || "
        f"{_COUNT} % ({_PIPELINE} * {_DATA}) == 0",
        "accelerator.count %d cannot be shared out over pipeline %d x data %d: write a multiple "
        "of %d",
        (_COUNT, _PIPELINE, _DATA, f"{_PIPELINE} * {_DATA}"),
        field=".accelerator.count",
    ),
    Rule(
        "!has(self.speculation.options) || "
        f"!has({_DRAFT_GPUS}) || {_DRAFT_GPUS} == 1 || {_DRAFT_GPUS} == "
        f"self.?parallelism.?tensor.orValue({_COUNT} / ({_PIPELINE} * {_DATA}))",
        "the draft runs on 1 GPU or on as many as the target's tensor parallelism: write 1, or "
        "leave draftTensorParallelSize out",
        field=".speculation.options.draftTensorParallelSize",
    ),
    Rule(
        f"{_DATA} == 1 || !has(self.speculation.proposalLength) || "
        "!has(self.speculation.proposalLength.perBatch)",
        "vLLM drops the table when data is above 1, since its engines would disagree: leave "
        "perBatch out, or write parallelism.data: 1",
        field=".speculation.proposalLength.perBatch",
        why=Why.FORBIDDEN,
    ),
)

BOUNDS_RULES = (
    Rule(
        f"!({_BOUNDS}) || self.speculation.method != 'none'",
        "method none has no proposal length: leave bounds out, or choose a method",
        field=".tuning.bounds",
        why=Why.FORBIDDEN,
    ),
    Rule(
        f"!({_BOUNDS}) || self.speculation.method == 'none' || "
        f"({_MIN} <= {_CAPACITY} && {_MAX} <= {_CAPACITY})",
        "bounds %d to %d reach above capacity %d: lower them, or raise "
        "speculation.proposalLength.capacity",
        (_MIN, _MAX, _CAPACITY),
        field=".tuning.bounds",
    ),
    Rule(
        f"!({_BOUNDS}) || self.speculation.method in ['none', 'suffix'] || {_MIN} == 0 || "
        f"{_MIN} > {_MAX} || {_MAX} > {_CAPACITY} || "
        f"{_CHOICES}.exists(k, k >= {_MIN} && k <= {_MAX})",
        "no choice lies within bounds %d to %d (choices: %s): widen the bounds, or add a length "
        "to speculation.proposalLength.choices",
        (_MIN, _MAX, _CHOICES),
        field=".tuning.bounds",
    ),
    Rule(
        f"!({_BOUNDS}) || self.speculation.method in ['none', 'suffix'] || {_MIN} > 0 || "
        f"{_MAX} == 0 || {_MAX} > {_CAPACITY} || {_CHOICES}.exists(k, k <= {_MAX})",
        "max %d is below the smallest choice %d, so that only plain decoding is left: write max: "
        "0 to switch speculation off, or list a length up to %d in "
        "speculation.proposalLength.choices",
        (_MAX, f"{_CHOICES}.min()", _MAX),
        field=".tuning.bounds.max",
    ),
    Rule(
        f"!({_BOUNDS}) || self.speculation.method != 'suffix'",
        "suffix decoding chooses its length itself and cannot be told while it serves: leave "
        "bounds out",
        field=".tuning.bounds",
        why=Why.FORBIDDEN,
    ),
)

_RESTARTS = "self.?tuning.?fallback.?level.orValue('Live') == 'Restart'"

FALLBACK_RULES = (
    Rule(
        f"!({_RESTARTS}) || !(self.speculation.method in ['none', 'suffix'])",
        "method %s has no proposal length that could be compared live: leave fallback.level out, "
        "or choose another method",
        ("self.speculation.method",),
        field=".tuning.fallback.level",
        why=Why.FORBIDDEN,
    ),
    Rule(
        f"!({_RESTARTS}) || {_DATA} == 1",
        "with parallelism.data %d nothing is measured live that a restart could be weighed by: "
        "leave fallback.level out, or write parallelism.data: 1",
        (_DATA,),
        field=".tuning.fallback.level",
        why=Why.FORBIDDEN,
    ),
    Rule(
        f"!({_RESTARTS}) || !({_BOUNDS}) || {_MIN} == 0",
        "bounds.min %d forbids fallback: write min: 0, or leave fallback.level out",
        (_MIN,),
        field=".tuning.fallback.level",
        why=Why.FORBIDDEN,
    ),
)

_SCHEDULED = (
    f"self.?tuning.?mode.orValue('{TuningMode.AUTO}') != '{TuningMode.OFF}' || "
    "self.speculation.?proposalLength.?perBatch.hasValue()"
)
"""Whether the engine starts with a schedule, as in `plan.schedule`, where the method has one."""

ENGINE_RULES = (
    Rule(
        f"self.speculation.method in ['none', 'suffix'] || {_DATA} > 1 || !({_SCHEDULED}) || "
        f"self.model.maxNumSeqs > {_CHOICES}.size()",
        "maxNumSeqs %d is too few for %d proposal lengths (0 and %s), since each needs a batch "
        "size of its own in the start schedule: write maxNumSeqs: %d or more, or list fewer "
        "speculation.proposalLength.choices",
        (
            "self.model.maxNumSeqs",
            f"{_CHOICES}.size() + 1",
            _CHOICES,
            f"{_CHOICES}.size() + 1",
        ),
        field=".model.maxNumSeqs",
    ),
    Rule(
        "!has(self.model.maxModelLen) || !has(self.speculation.options) || "
        "!has(self.speculation.options.maxModelLen) || "
        "self.speculation.options.maxModelLen <= self.model.maxModelLen",
        "the draft's maxModelLen %d is above the model's %d: lower it or leave it out",
        ("self.speculation.options.maxModelLen", "self.model.maxModelLen"),
        field=".speculation.options.maxModelLen",
    ),
    Rule(
        "!has(self.model.credentials) || !has(self.speculation.draft) || "
        "!has(self.speculation.draft.credentials) || "
        "self.model.credentials == self.speculation.draft.credentials",
        "one engine loads target and draft with one token: name the same Secret in both",
        field=".speculation.draft.credentials",
    ),
    Rule(
        "!(has(self.model.credentials) || self.speculation.?draft.?credentials.hasValue()) || "
        "!has(self.runtime) || !has(self.runtime.env) || "
        "!self.runtime.env.exists(variable, variable.name == 'HF_TOKEN')",
        "HF_TOKEN comes from credentials already: leave it out of env, or leave credentials out",
        field=".runtime.env",
        why=Why.FORBIDDEN,
    ),
    Rule(
        "!has(self.runtime) || !has(self.runtime.env) || "
        "!self.accelerator.products.exists(product, product in ['MI210', 'MI250X']) || "
        "!self.runtime.env.exists(variable, variable.name == 'VLLM_ROCM_USE_AITER' && "
        "has(variable.value) && variable.value == '1')",
        "VLLM_ROCM_USE_AITER works from MI300 on: leave it out, or take MI210 and MI250X out of "
        "accelerator.products",
        field=".runtime.env",
    ),
    Rule(
        "!has(self.speculation.options) || "
        "!has(self.speculation.options.enableAdaptiveVerification) || "
        "!self.speculation.options.enableAdaptiveVerification || "
        f"({_PIPELINE} == 1 && !(has(self.runtime) && has(self.runtime.args) && "
        "self.runtime.args.exists(argument, argument.matches('^--enforce[_-]eager|"
        "^--enable[_-]lora'))))",
        "enableAdaptiveVerification needs full graphs on one pipeline stage and no LoRA: write "
        "parallelism.pipeline: 1 without --enforce-eager and --enable-lora, or leave it out",
        field=".speculation.options.enableAdaptiveVerification",
    ),
)


class SpeculativeModelSpec(ApiModel):
    """What should run."""

    model_config = ConfigDict(
        json_schema_extra=rules(*PARALLELISM_RULES, *BOUNDS_RULES, *FALLBACK_RULES, *ENGINE_RULES)
    )

    model: ModelSpec = Field(description="The target model: it alone decides the output.")
    speculation: SpeculationSpec = Field(
        description="How tokens are proposed. The target model's output is never changed by it."
    )
    tuning: TuningSpec = Field(
        default=TuningSpec(),
        description="How the proposal length is chosen while the engines run; only fallback "
        "may restart them, where it says so.",
    )
    accelerator: AcceleratorSpec = Field(description="The GPUs of one replica.")
    parallelism: ParallelismSpec = Field(
        default=ParallelismSpec(),
        description="How a replica is split over its GPUs: tensor times pipeline times data is "
        "the count.",
    )
    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=1, description="Engines that serve; an autoscaler sets it through /scale."
    )
    runtime: RuntimeSpec = Field(
        default=RuntimeSpec(), description="The engine's container and its pod."
    )
    service: ServiceSpec = Field(default=ServiceSpec(), description="How the model is reached.")
    rollout: RolloutSpec = Field(
        default=RolloutSpec(),
        description="How a change reaches the running pods, always one pod at a time.",
    )


class Metadata(ApiModel):
    """The part of ObjectMeta that the operator uses."""

    name: str
    namespace: str
    uid: str
    generation: int = 0
    annotations: Mapping[str, str] = Field(default_factory=dict)


class SpeculativeModel(ApiModel):
    """One resource; `status` is kept as it was written, since only `api.status` builds it."""

    metadata: Metadata
    spec: SpeculativeModelSpec
    status: Mapping[str, Any] = Field(default_factory=dict)
