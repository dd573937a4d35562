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
    """How a pod of a new revision gets its GPUs.

    Auto starts one more pod first where its GPUs are free, and goes in place where they are not.
    """

    AUTO = "Auto"
    SURGE = "Surge"
    IN_PLACE = "InPlace"


class RolloutSpec(ApiModel):
    """How a change reaches the running pods. All of it is live: nothing here restarts a pod."""

    strategy: RolloutStrategy = Field(
        default=RolloutStrategy.AUTO,
        description="Surge starts one more pod first and waits for its GPUs as long as it takes. "
        "InPlace frees a pod's GPUs before its replacement starts. Auto tries Surge, and goes "
        "InPlace where no GPU is free or a quota refuses the pod.",
    )
    surge_timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        default=120,
        description="How long Auto waits for the GPUs of one more pod. More where nodes are "
        "added on demand.",
    )
    max_unavailable: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1,
        description="Most replicas that may be missing at once: while a rollout goes InPlace, once "
        "the first new pod serves, and while nodes are drained.",
    )
    allow_downtime: bool = Field(
        default=False,
        description="Whether a rollout InPlace may take the last pod that serves, as it must with "
        "one replica and no free GPU. Otherwise it waits, and says so.",
    )
    progress_deadline_seconds: Annotated[int, Field(ge=30, le=604_800)] | None = Field(
        default=None,
        description="After so long without any progress a rollout is reported as stalled; it goes "
        "on trying. By default runtime.startupTimeoutSeconds and ten minutes.",
    )
    disruption_budget: bool = Field(
        default=True,
        description="Whether a PodDisruptionBudget keeps drains of nodes to maxUnavailable pods at "
        "once, where replicas is above 1.",
    )
    trial: TrialSpec = Field(default=TrialSpec(), description="How a new revision proves itself.")
