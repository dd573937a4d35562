"""`spec.service` and `spec.rollout`: how the model is reached, and how a change reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from speculative_operator.api.base import ApiModel, LabelKey
from speculative_operator.api.trial import TrialSpec


class ServiceType(StrEnum):
    """As in a Service."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    LOAD_BALANCER = "LoadBalancer"


class ServiceSpec(ApiModel):
    """How the model is reached."""

    type: ServiceType = Field(default=ServiceType.CLUSTER_IP, description="Type of the Service.")
    port: Annotated[int, Field(ge=1, le=65_535)] = Field(
        default=80, description="Port of the Service."
    )
    annotations: Annotated[
        Mapping[LabelKey, Annotated[str, Field(max_length=4096)]], Field(max_length=16)
    ] = Field(
        default_factory=dict,
        description="Annotations of the Service, for example for a cloud's load balancer.",
    )


class RolloutStrategy(StrEnum):
    """InPlace frees a pod's GPUs before its replacement starts; Surge starts one more pod first."""

    IN_PLACE = "InPlace"
    SURGE = "Surge"


class RolloutSpec(ApiModel):
    """How a change reaches the running pods, always one pod at a time."""

    strategy: RolloutStrategy = Field(
        default=RolloutStrategy.IN_PLACE,
        description="InPlace frees a pod's GPUs before its replacement starts; Surge starts one "
        "more pod first and needs its GPUs free.",
    )
    trial: TrialSpec = Field(default=TrialSpec(), description="How a new revision proves itself.")
