"""`status`: what users read. Every value is bounded, so that a status stays a few KiB."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, PlainSerializer, ValidationError
from pydantic_core import CoreSchema, core_schema

from speculative_operator.api.base import ApiModel, list_by
from speculative_operator.api.conditions import ConditionStatus, ConditionType, Explained

MOST_REPLICA_DETAILS = 32
MOST_DECISIONS = 10
MOST_ROWS = 32
MOST_ALTERNATIVES = 16

Time = Annotated[str, Field(max_length=32, json_schema_extra={"format": "date-time"})]
"""RFC 3339 in UTC with seconds, as Kubernetes writes it: `2026-08-23T10:00:00Z`."""


@dataclass(frozen=True)
class Clipped:
    """A text that is cut to its limit: words of engines and of the cluster may be of any length."""

    limit: int
    """Most characters; the API server refuses more."""

    def __get_pydantic_core_schema__(
        self, source: type[str], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        limited = core_schema.str_schema(max_length=self.limit)
        return core_schema.no_info_before_validator_function(self._cut, limited)

    def _cut(self, text: object) -> object:
        if not isinstance(text, str) or len(text) <= self.limit:
            return text
        return text[: self.limit - 1] + "…"


RevisionKey = Annotated[str, Clipped(10)]
Text = Annotated[str, Clipped(1024)]
Name = Annotated[str, Field(max_length=253)]

Ratio = Annotated[float, PlainSerializer(lambda value: f"{value:.3f}", return_type=str)]
"""A share or a quotient; written with three decimals, since Kubernetes discourages floats."""
Factor = Annotated[float, PlainSerializer(lambda value: f"{value:.2f}", return_type=str)]
"""A speed-up or tokens a step; written with two decimals."""
Rate = Annotated[float, PlainSerializer(lambda value: f"{value:.1f}", return_type=str)]
"""Tokens a second; written with one decimal."""
Percent = Annotated[float, PlainSerializer(lambda value: f"{value:.1f}", return_type=str)]
"""A percentage; written with one decimal."""


class Condition(ApiModel):
    """As `metav1.Condition`; `last_transition_time` comes from the caller, who has the clock."""

    type: ConditionType = Field(description="Which condition.")
    status: ConditionStatus = Field(description="Whether it holds.")
    reason: Annotated[str, Field(min_length=1, max_length=64)] = Field(
        description="Why, in one word."
    )
    message: Annotated[str, Clipped(4096)] = Field(default="", description="Why.")
    observed_generation: int = Field(description="Generation of the spec that this tells of.")
    last_transition_time: Time = Field(description="Since when the status is what it is.")


class Mode(StrEnum):
    """What the replicas do now."""

    SPECULATIVE = "Speculative"
    FALLBACK = "Fallback"
    AUTOREGRESSIVE = "Autoregressive"


class BatchLength(ApiModel):
    """One row of the schedule in force: the proposal length for a range of batch sizes."""

    min_batch: int = Field(description="Smallest number of requests in a step.")
    max_batch: int = Field(description="Largest number of requests in a step, included.")
    proposal_length: int = Field(description="Draft tokens proposed; 0 is plain decoding.")


class WhyNot(Explained):
    """Why another proposal length is not in force."""

    SLOWER = "MeasuredSlower", "It is slower, beyond the error."
    NOT_MEASURED = "NotMeasured", "It was not timed well enough under the traffic of this time."
    IN_DOUBT = "InDoubt", "Its last time contradicts those before, so it is tried again."
    BELOW_MINIMUM_GAIN = "BelowMinimumGain", "It is faster by less than the minimum gain."
    NO_SURE_GAIN = "WithinHysteresis", "It is not faster beyond the error and the hysteresis."
    WAITS_FOR_TRAFFIC = "WaitsForTraffic", "It is better; traffic has to come to its batch sizes."
    ANOTHER_IS_FASTER = "AnotherIsFaster", "It is better, and another one is better still."
    RECOMMENDED = "Recommended", "It is better; mode Recommend only says so."
    OUT_OF_BOUNDS = "OutOfBounds", "The bounds do not allow it."
    RESTART_NEEDED = "RestartNeeded", "K cannot be changed live, so no other one is measured."
    LONGER_STEPS = "LongerSteps", "It brings more, in longer steps than objective Latency wants."
    LOSES_TOO_MUCH = "LosesTooMuch", "Its steps are shorter, but it loses too much throughput."
    FAULTY_DRAFT = "FaultyDraft", "The draft is faulty; it is only tried for recovery."
    FIXED = "FixedLengths", "The mode is Off: the fixed lengths are played."


class Alternative(ApiModel):
    """What another proposal length would bring at the batch sizes that are seen most."""

    proposal_length: int = Field(description="Draft tokens proposed; 0 is plain decoding.")
    goodput: Rate | None = Field(default=None, description="Expected goodput.")
    gain_percent: Percent | None = Field(
        default=None, description="Expected change of goodput against what is in force."
    )
    error_percent: Percent | None = Field(
        default=None, description="Standard error of gainPercent."
    )
    measured_at: Time | None = Field(
        default=None, description="When it was last timed; absent when never."
    )
    reason: WhyNot = Field(description="Why it is not in force.")
    message: Annotated[str, Clipped(128)] = Field(description="The same with its numbers.")


class NextLook(ApiModel):
    """When other proposal lengths are tried next."""

    windows: int | None = Field(
        default=None,
        description="After so many windows with evidence; 0 while a look goes on, absent when "
        "none is to come.",
    )
    time: Time | None = Field(
        default=None,
        description="About when that is, if windows go on as the last one; absent without traffic.",
    )
    message: Annotated[str, Clipped(128)] = Field(description="The same in words.")


class OtherVariant(ApiModel):
    """What engines that are started without speculation, or with it again, would bring, where
    `tuning.fallback.level` allows such restarts."""

    speculative: bool = Field(description="Whether the other ones speculate.")
    gain_percent: Percent | None = Field(
        default=None,
        description="Expected change of goodput at the load of the last window; absent when too "
        "little is known.",
    )
    owed_seconds: int = Field(
        description="Seconds of goodput that they would have brought since the last restart; "
        "below 0 where they would have cost some.",
    )
    price_seconds: int | None = Field(
        default=None,
        description="What owedSeconds has to exceed; absent before a start was timed.",
    )
    message: Annotated[str, Clipped(128)] = Field(description="Why they do not run.")


class Evidence(ApiModel):
    """What the last windows measured. A field is absent where nothing is known: absent is not 0."""

    measured_at: Time | None = Field(default=None, description="End of the last window.")
    drafts: int | None = Field(default=None, description="Drafts in the last window.")
    acceptance: Ratio | None = Field(
        default=None, description="Accepted of all drafted tokens, 0 to 1."
    )
    acceptance_length: Factor | None = Field(
        default=None, description="Mean tokens a step, the bonus token included: 1 to K+1."
    )
    position_acceptance: tuple[Ratio, ...] = Field(
        default=(),
        max_length=64,
        description="Chance that all tokens up to this position are accepted.",
    )
    goodput: Rate | None = Field(
        default=None, description="Generated tokens a second and ready replica, while decoding."
    )
    speedup: Factor | None = Field(
        default=None,
        description="Measured goodput over that of proposal length 0 on the same engines.",
    )
    alternatives: tuple[Alternative, ...] = Field(
        default=(),
        max_length=MOST_ALTERNATIVES,
        description="What other lengths would bring at the batch sizes that are seen most.",
        json_schema_extra=list_by("proposalLength"),
    )
    next_look: NextLook | None = Field(
        default=None, description="When other lengths are tried next."
    )
    other_variant: OtherVariant | None = Field(
        default=None, description="Why engines are not restarted without speculation, or back."
    )


class ReplicaDetail(ApiModel):
    """One pod."""

    name: Name = Field(description="Name of the pod.")
    revision: RevisionKey = Field(description="Key of the revision that it runs.")
    ready: bool = Field(description="Whether it is ready and lists the served names.")
    tunable: bool | None = Field(
        default=None, description="Whether its proposal length can be changed live."
    )
    schedule: Annotated[str, Clipped(12)] | None = Field(
        default=None, description="Hash of the schedule in force."
    )
    message: Text | None = Field(default=None, description="Why not ready, or why not tunable.")


class Revisions(ApiModel):
    """Keys of the revisions that matter."""

    current: RevisionKey | None = Field(
        default=None,
        description="What should run: what the spec asks for, or the last good one if that was "
        "rejected.",
    )
    trial: RevisionKey | None = Field(default=None, description="The current one, while on trial.")
    last_good: RevisionKey | None = Field(
        default=None, description="The newest one that has served and was not rejected."
    )


class DecisionRecord(ApiModel):
    """One change of the schedule, or one that mode Recommend would make."""

    time: Time = Field(description="When it was decided.")
    min_batch: int = Field(description="Smallest batch size that it is for.")
    max_batch: int = Field(description="Largest batch size that it is for, included.")
    before: int = Field(description="Proposal length until then.")
    after: int = Field(description="Proposal length from then on.")
    reason: Annotated[str, Field(max_length=64)] = Field(description="One word.")
    message: Text = Field(description="The evidence in words.")
    outcome: Text | None = Field(
        default=None, description="What happened to goodput afterwards, once measured."
    )


class ModelStatus(ApiModel):
    """What runs, what was measured and what was decided."""

    observed_generation: int = Field(description="Generation of the spec that this tells of.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        max_length=8,
        description="What holds, one entry a type.",
        json_schema_extra=list_by("type"),
    )
    replicas: int = Field(default=0, description="Pods of all revisions.")
    ready_replicas: int = Field(default=0, description="Pods that serve.")
    selector: Annotated[str, Field(max_length=512)] = Field(
        default="", description="Selects the pods of all revisions; read by autoscalers."
    )
    mode: Mode | None = Field(default=None, description="What the replicas do now.")
    proposal_length: int | None = Field(
        default=None, description="K in force at the batch size that is seen most."
    )
    schedule: tuple[BatchLength, ...] = Field(
        default=(), max_length=MOST_ROWS, description="K in force by batch size."
    )
    evidence: Evidence = Field(default=Evidence(), description="What the last windows measured.")
    revisions: Revisions = Field(default=Revisions(), description="Which revisions there are.")
    replica_details: tuple[ReplicaDetail, ...] = Field(
        default=(), max_length=MOST_REPLICA_DETAILS, description="At most 32 pods."
    )
    decisions: tuple[DecisionRecord, ...] = Field(
        default=(), max_length=MOST_DECISIONS, description="The last ones, newest first."
    )

    def wire(self) -> dict[str, Any]:
        """The status as it is patched: camelCase, absent where nothing is known."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def read(cls, status: Mapping[str, Any]) -> ModelStatus | None:
        """The status as it was written before; None for a model that never had one.

        Never raises. Others may write conditions too, and so may an operator of another version:
        an entry that means nothing here is left out.
        """
        if not status.get("conditions"):
            return None
        found = {"observedGeneration": 0, **status}
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            strange = {entry["loc"][:2] for entry in error.errors()}
        return cls.model_validate(_without(found, strange))


def _without(
    status: Mapping[str, Any], places: Collection[tuple[int | str, ...]]
) -> Mapping[str, Any]:
    """The status without the fields at some places, and without what is in a field there."""
    kept: dict[str, Any] = {"observedGeneration": 0}
    for name, value in status.items():
        if (name,) in places:
            continue
        match value:
            case Mapping():
                kept[name] = {key: each for key, each in value.items() if (name, key) not in places}
            case list():
                kept[name] = [each for n, each in enumerate(value) if (name, n) not in places]
            case _:
                kept[name] = value
    return kept
