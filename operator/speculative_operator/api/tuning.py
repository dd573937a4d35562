"""`spec.tuning`: who decides the proposal length, and within what limits. All of it is live; only
where `fallback` allows it does the operator restart engines of its own accord."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from speculative_operator.api.base import ApiModel, LengthOrNone, Rule, Why, rules

USUAL_LOSS_PERCENT, MOST_LOSS_PERCENT = 5, 50
"""Throughput that objective Latency gives up at most: where nothing is written, and ever."""

MOST_TRIAL_PERCENT = 50


class TuningMode(StrEnum):
    """Auto decides and acts, Recommend decides and only says so, Off plays the fixed lengths."""

    AUTO = "Auto"
    RECOMMEND = "Recommend"
    OFF = "Off"


class Objective(StrEnum):
    """Throughput wants most tokens a second; Latency the shortest waits between the tokens of a
    request, as far as maxThroughputLossPercent allows."""

    THROUGHPUT = "Throughput"
    LATENCY = "Latency"


class MetricsSource(StrEnum):
    """Pods are asked by the operator itself, Prometheus has asked them before."""

    PODS = "Pods"
    PROMETHEUS = "Prometheus"


class Bounds(ApiModel):
    """Limits of the proposal length, both in; equal ones pin it. min above 0 forbids fallback."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.min) || !has(self.max) || self.min <= self.max",
                "min %d is above max %d: write the smaller number as min, or both the same to pin "
                "the length",
                ("self.min", "self.max"),
                field=".min",
            )
        )
    )

    min: LengthOrNone | None = Field(
        default=None, description="Shortest proposal; 0 by default, above 0 forbids fallback."
    )
    max: LengthOrNone | None = Field(
        default=None, description="Longest proposal; the capacity by default."
    )


class WindowSpec(ApiModel):
    """When a measuring window closes: enough drafts and time, at the latest after maxSeconds."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.minSeconds <= self.maxSeconds",
                "minSeconds %d is above maxSeconds %d: lower minSeconds or raise maxSeconds",
                ("self.minSeconds", "self.maxSeconds"),
                field=".minSeconds",
            )
        )
    )

    drafts: Annotated[int, Field(ge=50, le=100_000)] = Field(
        default=400, description="Drafts, over all ready replicas, that close a window."
    )
    min_seconds: Annotated[int, Field(ge=1, le=600)] = Field(
        default=5, description="A window is at least this long, in seconds."
    )
    max_seconds: Annotated[int, Field(ge=5, le=3600)] = Field(
        default=60, description="A window is closed after so many seconds, however few the drafts."
    )


class FallbackLevel(StrEnum):
    """Live plays K=0 in the running engines; Restart may also start them without speculation."""

    LIVE = "Live"
    RESTART = "Restart"


class OnStartFailure(StrEnum):
    """Serve starts without what keeps engines from starting, Fail starts nothing else."""

    SERVE = "Serve"
    FAIL = "Fail"


class FallbackSpec(ApiModel):
    """How far the operator may go where speculation costs too much, or does not start."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.level == 'Restart' || !has(self.allowDowntime) || !self.allowDowntime",
                "level Live restarts nothing: leave allowDowntime out, or write level: Restart",
                field=".allowDowntime",
                why=Why.FORBIDDEN,
            ),
            Rule(
                "self.level == 'Restart' || !has(self.sensor) || !self.sensor",
                "level Live restarts nothing, so every replica can speculate: leave sensor out, or "
                "write level: Restart",
                field=".sensor",
                why=Why.FORBIDDEN,
            ),
        )
    )

    level: FallbackLevel = Field(
        default=FallbackLevel.LIVE,
        description="Live plays K=0 in the running engines, at once and without a restart. Restart "
        "may also start them without speculation, one pod at a time, where that pays for the "
        "restart, and back.",
    )
    allow_downtime: bool = Field(
        default=False,
        description="Whether such a restart may leave nothing serving, as it does with one replica "
        "where rollout.strategy is InPlace, or no GPU is free for one pod more. Otherwise it is "
        "not done there.",
    )
    sensor: bool = Field(
        default=False,
        description="Whether one of two or more replicas stays speculative meanwhile, so that the "
        "way back is measured and not guessed.",
    )
    on_start_failure: OnStartFailure = Field(
        default=OnStartFailure.SERVE,
        description="Where speculation keeps engines from starting and no older revision serves: "
        "Serve starts them without the option that is at fault, else without speculation, and says "
        "so; Fail starts none until the spec changes, but what serves in another form goes on. It "
        "holds in every mode.",
    )


class ReplaceFaultyPods(StrEnum):
    """Never only tells of engines at fault, OneAtATime also evicts their pods."""

    NEVER = "Never"
    ONE_AT_A_TIME = "OneAtATime"


class TuningSpec(ApiModel):
    """How the proposal length is chosen while the engines run; only `fallback` may restart them."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "self.objective == 'Latency' || !has(self.maxThroughputLossPercent)",
                "objective Throughput gives up no throughput: leave maxThroughputLossPercent out, "
                "or write objective: Latency",
                field=".maxThroughputLossPercent",
                why=Why.FORBIDDEN,
            )
        )
    )

    mode: TuningMode = Field(
        default=TuningMode.AUTO,
        description="Auto decides and acts, Recommend decides and only says so, Off plays the "
        "fixed lengths.",
    )
    objective: Objective = Field(
        default=Objective.THROUGHPUT,
        description="What the best length is. Throughput: the most tokens a second. Latency: the "
        "shortest steps, which are the waits between the tokens of a request, among the lengths "
        "that maxThroughputLossPercent allows.",
    )
    max_throughput_loss_percent: Annotated[int, Field(ge=1, le=MOST_LOSS_PERCENT)] | None = Field(
        default=None,
        description="With objective Latency: how much less throughput than the best length's is "
        f"accepted for shorter steps, at each batch size; {USUAL_LOSS_PERCENT} by default.",
    )
    bounds: Bounds = Field(
        default=Bounds(),
        description="Limits of the proposal length, both in; equal ones pin it. With mode Off they "
        "are not looked at: the fixed lengths are played as written.",
    )
    minimum_gain_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=5,
        description="Goodput that speculation must bring over plain decoding to be kept on.",
    )
    window: WindowSpec = Field(default=WindowSpec(), description="When a measuring window closes.")
    source: MetricsSource = Field(
        default=MetricsSource.PODS,
        description="Where the engines' numbers come from. Pods: the operator reads each engine. "
        "Prometheus: it asks the Prometheus of the chart's value monitoring.prometheus.url, which "
        "has to scrape the ports speculation and http of the pods at least every 30 s.",
    )
    trial_share_percent: Annotated[int, Field(ge=0, le=MOST_TRIAL_PERCENT)] = Field(
        default=10,
        description="Most of an engine's steps that may be spent on trying other proposal "
        "lengths; 0 forbids trials.",
    )
    fallback: FallbackSpec = Field(
        default=FallbackSpec(),
        description="How far the operator may go where speculation costs more than it brings. With "
        "mode Off only onStartFailure is looked at; mode Recommend only says what would be done.",
    )
    replace_faulty_pods: ReplaceFaultyPods = Field(
        default=ReplaceFaultyPods.NEVER,
        description="What is done about a pod whose engine hangs, has stopped to draft or accepts "
        "less and less: Never only tells it, OneAtATime evicts the pod where budgets allow it, at "
        "most one an hour for one reason, and none that still answers while no other one serves, "
        "unless rollout.allowDowntime is true. It holds in every mode.",
    )

    @property
    def throughput_loss(self) -> float:
        """Share of the best throughput that may be given up for shorter steps."""
        if self.objective is Objective.THROUGHPUT:
            return 0.0
        return (self.max_throughput_loss_percent or USUAL_LOSS_PERCENT) / 100
