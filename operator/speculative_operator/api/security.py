"""`spec.runtime.securityContext`: what the engine's container may do. Never privileged."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from speculative_operator.api.base import LIST_IS_SET, ApiModel, Rule, Why, rules

SystemId = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A numeric user or group."""

Capability = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Z_]+$")]


class SeccompType(StrEnum):
    """Which system calls are allowed."""

    RUNTIME_DEFAULT = "RuntimeDefault"
    LOCALHOST = "Localhost"
    UNCONFINED = "Unconfined"


class SeccompProfile(ApiModel):
    """Which system calls are allowed."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "(self.type == 'Localhost') == has(self.localhostProfile)",
                "type Localhost and localhostProfile go together: write both or neither",
                field=".localhostProfile",
            )
        )
    )

    type: SeccompType = Field(
        default=SeccompType.RUNTIME_DEFAULT,
        description="RuntimeDefault; Unconfined is what AMD's own vLLM example uses.",
    )
    localhost_profile: Annotated[str, Field(min_length=1, max_length=512)] | None = Field(
        default=None, description="A profile file on the node, for type Localhost."
    )


class Capabilities(ApiModel):
    """Linux capabilities."""

    add: tuple[Capability, ...] = Field(
        default=(), max_length=16, description="None by default.", json_schema_extra=LIST_IS_SET
    )
    drop: tuple[Capability, ...] = Field(
        default=("ALL",),
        max_length=16,
        description="All by default.",
        json_schema_extra=LIST_IS_SET,
    )


class SecurityContext(ApiModel):
    """The engine's security; the defaults pass restricted pod security."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!self.runAsNonRoot || self.runAsUser != 0",
                "user 0 is root: write another runAsUser, or runAsNonRoot: false",
                field=".runAsUser",
                why=Why.INVALID,
            )
        )
    )

    run_as_user: SystemId = Field(default=1000, description="User that the engine runs as.")
    run_as_group: SystemId = Field(default=1000, description="Group that the engine runs as.")
    run_as_non_root: bool = Field(default=True, description="Refuse to run as root.")
    read_only_root_filesystem: bool = Field(
        default=False, description="Let the engine write to its caches only."
    )
    capabilities: Capabilities = Field(
        default=Capabilities(), description="Linux capabilities; all are dropped by default."
    )
    seccomp_profile: SeccompProfile = Field(
        default=SeccompProfile(), description="Which system calls are allowed."
    )
