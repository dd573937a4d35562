"""`spec.runtime`: the pods around the engine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from speculative_operator.api.base import (
    LIST_IS_SET,
    ApiModel,
    LabelKey,
    ObjectName,
    Rule,
    Why,
    list_by,
    rules,
)
from speculative_operator.api.quantities import Quantity
from speculative_operator.api.reserved import ARGUMENT_RULES, VARIABLE_RULES
from speculative_operator.api.security import SecurityContext, SystemId

Resources = Annotated[
    Mapping[LabelKey, Quantity],
    Field(
        max_length=16,
        json_schema_extra=rules(
            Rule(
                "self.all(resource, !resource.startsWith('amd.com/'))",
                "GPUs are asked for by spec.accelerator: write count and resourceName there",
                why=Why.FORBIDDEN,
            )
        ),
    ),
]


class KeyRef(ApiModel):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName = Field(description="Name of the Secret or ConfigMap.")
    key: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="Key in it.")
    optional: bool | None = Field(default=None, description="Start also when it is absent.")


class FieldRef(ApiModel):
    """A field of the pod."""

    field_path: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="For example status.podIP."
    )


class EnvSource(ApiModel):
    """Where a variable's value comes from; exactly one."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.fieldRef)]"
                ".filter(given, given).size() == 1",
                "write exactly one of secretKeyRef, configMapKeyRef and fieldRef",
            )
        )
    )

    secret_key_ref: KeyRef | None = Field(default=None, description="A key of a Secret.")
    config_map_key_ref: KeyRef | None = Field(default=None, description="A key of a ConfigMap.")
    field_ref: FieldRef | None = Field(default=None, description="A field of the pod.")


class EnvVar(ApiModel):
    """An environment variable of the engine."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "has(self.value) != has(self.valueFrom)",
                "variable %s: write either value or valueFrom",
                ("self.name",),
            )
        )
    )

    name: Annotated[
        str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    ] = Field(description="Name of the variable.")
    value: Annotated[str, Field(max_length=4096)] | None = Field(
        default=None, description="Its value as written."
    )
    value_from: EnvSource | None = Field(default=None, description="Where its value comes from.")


class ResourceSpec(ApiModel):
    """CPU and memory of the engine; GPUs are asked for by `spec.accelerator`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.requests) || !has(self.limits) || self.requests.all(name, "
                "!(name in self.limits) || !isQuantity(string(self.requests[name])) || "
                "!isQuantity(string(self.limits[name])) || "
                "!quantity(string(self.requests[name])).isGreaterThan("
                "quantity(string(self.limits[name]))))",
                "a request is above its limit: lower the request or raise the limit",
                field=".requests",
            )
        )
    )

    requests: Resources = Field(
        default_factory=dict, description="What the scheduler keeps free for the engine."
    )
    limits: Resources = Field(default_factory=dict, description="What the engine may use at most.")


class PullPolicy(StrEnum):
    """When the image is pulled."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class RuntimeSpec(ApiModel):
    """The engine's container and its pod."""

    image: Annotated[str, Field(min_length=1, max_length=512, pattern=r"^\S+$")] | None = Field(
        default=None, description="A vLLM image for ROCm; by default the operator's."
    )
    image_pull_policy: PullPolicy = Field(
        default=PullPolicy.IF_NOT_PRESENT, description="When the image is pulled."
    )
    image_pull_secrets: tuple[ObjectName, ...] = Field(
        default=(),
        max_length=8,
        description="Secrets with the registry's credentials.",
        json_schema_extra=LIST_IS_SET,
    )
    service_account_name: ObjectName | None = Field(
        default=None, description="By default one without rights is made for the model."
    )
    args: tuple[Annotated[str, Field(min_length=1, max_length=2048)], ...] = Field(
        default=(),
        max_length=64,
        description="Further arguments of vllm serve, in this order. Flags that a field of this "
        "resource sets, or that the operator needs, are refused.",
        json_schema_extra=rules(*ARGUMENT_RULES),
    )
    env: tuple[EnvVar, ...] = Field(
        default=(),
        max_length=64,
        description="Environment variables of the engine.",
        json_schema_extra={**list_by("name"), **rules(*VARIABLE_RULES)},
    )
    resources: ResourceSpec = Field(
        default=ResourceSpec(),
        description="CPU and memory of the engine; GPUs are asked for by spec.accelerator.",
    )
    priority_class_name: ObjectName | None = Field(
        default=None,
        description="PriorityClass of the pods. With one above 0 that may preempt, "
        "rollout.strategy Auto surges only where free GPUs are counted.",
    )
    shared_memory: Quantity = Field(default="8Gi", description="Size of /dev/shm, in memory.")
    security_context: SecurityContext = Field(
        default=SecurityContext(),
        description="The engine's security; the defaults pass restricted pod security.",
    )
    supplemental_groups: tuple[SystemId, ...] = Field(
        default=(),
        max_length=16,
        description="Numeric groups that own /dev/kfd and /dev/dri on the hosts.",
        json_schema_extra=LIST_IS_SET,
    )
    startup_timeout_seconds: Annotated[int, Field(ge=30, le=86_400)] = Field(
        default=1800, description="How long an engine may take to load before it is restarted."
    )
    drain_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=120, description="How long running requests may go on when a pod is stopped."
    )
    pod_template: Mapping[str, Any] | None = Field(
        default=None,
        description="Metadata and spec laid over the pod template; lists of named things are "
        "merged by name. What the operator itself needs cannot be overlaid.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
