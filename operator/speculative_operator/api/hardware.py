"""`spec.accelerator` and `spec.parallelism`: which GPUs, how many, and how the model is split."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from speculative_operator.api.base import (
    LIST_IS_SET,
    ApiModel,
    GpuCount,
    LabelKey,
    LabelValue,
    Rule,
    Why,
    rules,
)

_NAME = "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
LABEL_KEY = f"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?{_NAME}$"
LABEL_VALUE = f"^({_NAME})?$"


class Product(StrEnum):
    """AMD Instinct accelerators, chosen by device id on the node."""

    MI210 = "MI210"
    MI250X = "MI250X"
    MI300A = "MI300A"
    MI300X = "MI300X"
    MI308X = "MI308X"
    MI325X = "MI325X"
    MI350X = "MI350X"
    MI355X = "MI355X"


class TolerationOperator(StrEnum):
    """How a toleration's value is compared."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What the taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(ApiModel):
    """As in a pod. `amd.com/gpu` is always tolerated and need not be listed."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.operator == 'Equal' || !has(self.value)",
                "a value is compared by operator Equal only: write operator: Equal, or leave "
                "value out",
                field=".value",
                why=Why.FORBIDDEN,
            ),
            Rule(
                "self.operator == 'Exists' || has(self.key)",
                "operator Equal needs a key; without a key write operator: Exists",
                field=".key",
                why=Why.REQUIRED,
            ),
            Rule(
                "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
                "tolerationSeconds counts for effect NoExecute only: write that effect, or leave "
                "tolerationSeconds out",
                field=".tolerationSeconds",
                why=Why.FORBIDDEN,
            ),
        )
    )

    key: LabelKey | None = Field(default=None, description="The taint's key; absent means all.")
    operator: TolerationOperator = Field(
        default=TolerationOperator.EXISTS, description="How the value is compared."
    )
    value: LabelValue | None = Field(default=None, description="The taint's value, for Equal.")
    effect: TaintEffect | None = Field(
        default=None, description="The taint's effect; absent means all."
    )
    toleration_seconds: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="How long a NoExecute taint is tolerated; absent means for ever."
    )


class AcceleratorSpec(ApiModel):
    """The GPUs of one replica."""

    products: tuple[Product, ...] = Field(
        min_length=1,
        max_length=8,
        description="AMD Instinct products; any of these will do.",
        json_schema_extra=LIST_IS_SET,
    )
    count: GpuCount = Field(default=1, description="GPUs a replica.")
    resource_name: Annotated[str, Field(max_length=63)] = Field(
        default="amd.com/gpu",
        description="The extended resource; partitions may be amd.com/cpx_nps4 and the like.",
        json_schema_extra=rules(
            Rule(
                "self.matches('^amd[.]com/[a-z0-9_]+$')",
                "write amd.com/gpu, or a partition's resource such as amd.com/cpx_nps4",
            )
        ),
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(),
        max_length=16,
        description="Further taints to tolerate; amd.com/gpu always is.",
    )
    node_selector: Annotated[Mapping[LabelKey, LabelValue], Field(max_length=16)] = Field(
        default_factory=dict,
        description="Labels that the node must have, besides those of the product.",
        json_schema_extra=rules(
            Rule(
                f"self.all(key, key.matches('{LABEL_KEY}') && self[key].matches('{LABEL_VALUE}'))",
                "a key or value cannot be a node label: write for example "
                "topology.kubernetes.io/zone: zone-a",
            )
        ),
    )


class ParallelismSpec(ApiModel):
    """How a replica is split over its GPUs: tensor times pipeline times data is the count."""

    tensor: GpuCount | None = Field(
        default=None,
        description="GPUs that a layer is split over; by default what the count leaves after "
        "pipeline and data.",
    )
    pipeline: GpuCount = Field(default=1, description="Stages that the layers are split into.")
    data: GpuCount = Field(
        default=1,
        description="Engines side by side in a replica. Above 1 the proposal length cannot be "
        "tuned live.",
    )
    expert: bool = Field(default=False, description="Spread experts over the GPUs.")
