"""`spec.rollout.trial`: how a new revision proves itself on one pod before the others follow."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from speculative_operator.api.base import ApiModel


class TrialMode(StrEnum):
    """Auto compares a new revision with the one that serves, Off only waits until it answers."""

    AUTO = "Auto"
    OFF = "Off"


class TrialSpec(ApiModel):
    """What a new revision must show beside the one that serves. Live; with mode Off only the start
    of the first pod is waited for, and the rest is not looked at."""

    mode: TrialMode = Field(
        default=TrialMode.AUTO,
        description="Auto tries a new revision on one pod: it must start, answer, give the same "
        "output and not be slower, or the last good revision comes back. Off only waits until its "
        "first pod answers, compares nothing, and goes back only where no start can succeed.",
    )
    tolerance: Annotated[float, Field(ge=0, le=20)] = Field(
        default=0.5,
        description="Nats. Where the two best tokens of the engine on trial are nearer to each "
        "other, the other one of them is no difference: kernels differ in near ties.",
    )
    max_slowdown_percent: Annotated[int, Field(ge=1, le=90)] = Field(
        default=10,
        description="Goodput at the same batch size that a new revision may lose; it is rejected "
        "when it loses more with 95 % confidence.",
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = Field(
        default=600,
        description="After so long on the Service without a sure answer it is promoted, and the "
        "verdict says that its speed was not measured. A new operator begins to count anew.",
    )
