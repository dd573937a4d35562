"""Condition types, their reasons and the reasons of Events, each with one line of meaning.

The meanings are what users read in the reference page, which is generated from here. A message is
written in sentences; it may end in another program's words, which stay as they are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Explained(StrEnum):
    """A name with one line of meaning: `NAME = "Name", "What it says."`."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """A member that is the plain string `value` and carries its meaning beside it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class ConditionType(Explained):
    """The first five are always present; the last two, for kstatus, only while they are True."""

    ACCEPTED = "Accepted", "The resource asks for something that can be run."
    READY = "Ready", "Every wanted replica serves the model under its name."
    PROGRESSING = "Progressing", "Pods are being started, replaced or removed."
    SPECULATION_HEALTHY = (
        "SpeculationHealthy",
        "Drafts are made and accepted as a sound draft's are.",
    )
    TUNED = "Tuned", "The proposal lengths in force are the best that measurement knows."
    RECONCILING = "Reconciling", "Present while the newest spec is not yet what runs."
    STALLED = "Stalled", "Present while nothing goes on before the user does something."


ALWAYS_PRESENT = (
    ConditionType.ACCEPTED,
    ConditionType.READY,
    ConditionType.PROGRESSING,
    ConditionType.SPECULATION_HEALTHY,
    ConditionType.TUNED,
)


class ConditionStatus(StrEnum):
    """As in every Kubernetes condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(Explained):
    """Why a condition has its status."""

    # Accepted
    VALID = "Valid", "The resource can be run as written."
    MEMORY_TIGHT = (
        "MemoryTight",
        "It can be run, with little memory left for the KV cache; the message says how much.",
    )
    INVALID = "Invalid", "The resource cannot be run; the message says what to write instead."
    NAME_CONFLICT = (
        "NameConflict",
        "An object of a needed name belongs to somebody else; rename the model or remove it.",
    )

    CONTESTED = (
        "Contested",
        "Somebody undoes each repair of an object; the message says which one, and how.",
    )
    FORBIDDEN = (
        "Forbidden",
        "The API server forbids a needed object (a quota, a policy, a right), in its own words.",
    )

    # Ready
    SERVING = "Serving", "All wanted replicas are ready and answer to the served names."
    SCALED_TO_ZERO = "ScaledToZero", "spec.replicas is 0: none is wanted, and nothing serves."
    STARTING = "Starting", "Pods run and the engines are still loading."
    WAITING_FOR_GPUS = (
        "WaitingForGpus",
        "Every node that fits has too few free GPUs; the pods start when some come free.",
    )
    NO_NODE_FITS = "NoNodeFits", "No node has the GPUs that are asked for, however many come free."
    UNSCHEDULABLE = "Unschedulable", "The scheduler finds no node; the message is its own."
    POD_NOT_ENDING = (
        "PodNotEnding",
        "A pod is Terminating beyond its grace and holds its GPUs; the message names its node.",
    )
    IMAGE_UNAVAILABLE = (
        "ImageUnavailable",
        "An image cannot be pulled; the message is the kubelet's.",
    )
    CONFIGURATION_REFUSED = (
        "ConfigurationRefused",
        "The engine refuses what it was asked for; the message names the field to change.",
    )
    OUT_OF_GPU_MEMORY = (
        "OutOfGpuMemory",
        "Weights, KV cache or graphs do not fit into the GPU's memory.",
    )
    OUT_OF_MEMORY = (
        "OutOfMemory",
        "The engine ran out of main memory, its container's limit or /dev/shm.",
    )
    MODEL_UNAVAILABLE = (
        "ModelUnavailable",
        "Weights are not where the spec says, or the token may not read them.",
    )
    DRAFT_DOES_NOT_FIT = (
        "DraftDoesNotFit",
        "Draft and target cannot work together: another vocabulary, size or kind.",
    )
    KERNEL_FAULT = (
        "KernelFault",
        "The image has no kernel for this on this GPU, or a kernel faulted.",
    )
    DEVICE_FAULT = (
        "DeviceFault",
        "The node or its GPU is at fault, or may not be opened; it is tried again.",
    )
    CONTAINER_FAILED = (
        "ContainerFailed",
        "A container ended; the message is its own reason of termination.",
    )
    PODS_NOT_CREATED = "PodsNotCreated", "The API server refuses the pods, for example by a quota."
    ENGINE_HANGS = (
        "EngineHangs",
        "An engine has requests and ends no step, though it answers its probes.",
    )
    NAME_NOT_SERVED = "NameNotServed", "An engine answers but does not list the served names."
    NOT_ACCEPTED = "NotAccepted", "Nothing was started, because the resource was not accepted."

    # Progressing
    ROLLING_OUT = "RollingOut", "Pods of an older revision are being replaced."
    SCALING = "Scaling", "The number of replicas is being changed."
    DOWNTIME_NOT_ALLOWED = (
        "DowntimeNotAllowed",
        "No pod more can serve meanwhile, and the last one that serves is not to be replaced.",
    )
    PROGRESS_DEADLINE_EXCEEDED = (
        "ProgressDeadlineExceeded",
        "Nothing has moved for rollout.progressDeadlineSeconds; the message says what is missing.",
    )
    SETTLED = "Settled", "What runs is what is wanted."
    ON_TRIAL = "OnTrial", "A new revision proves itself on one pod before the others follow."
    NEVER_READY = "NeverReady", "A new revision's engine did not get ready in time."
    DOES_NOT_ANSWER = "DoesNotAnswer", "A new revision does not answer what the running one does."
    OUTPUT_DIFFERS = "OutputDiffers", "A new revision gives another output for the same prompts."
    TOO_SLOW = "TooSlow", "A new revision loses more goodput than rollout.trial allows."
    REJECTED = "Rejected", "What the spec asks for was tried and rejected; the message says why."

    # SpeculationHealthy
    HEALTHY = "Healthy", "Drafts are accepted at a rate that a sound draft has."
    NOT_SPECULATING = "NotSpeculating", "The method is none: there is nothing to be healthy."
    NO_ACCEPTANCE = (
        "NoAcceptance",
        "Drafts are made and none is ever accepted: the draft does not fit the target.",
    )
    WEAK_ACCEPTANCE = (
        "WeakAcceptance",
        "Fewer than one in ten first draft tokens is accepted, which no sound draft has.",
    )
    NO_DRAFTS = "NoDrafts", "The engine works but makes no drafts although it should."
    COUNTERS_INCONSISTENT = (
        "CountersInconsistent",
        "The engine's counters contradict each other, so nothing is concluded from them.",
    )
    REPLICA_OUT_OF_LINE = (
        "ReplicaOutOfLine",
        "One pod's acceptance, step time or counters are unlike the others'; it does not count.",
    )
    REPLICAS_DISAGREE = (
        "ReplicasDisagree",
        "Pods show unlike numbers, and nothing known tells which of them is sound.",
    )
    ACCEPTANCE_DECAYS = (
        "AcceptanceDecays",
        "Acceptance falls with the hours that an engine has run.",
    )
    PROMPTS_REPEAT = (
        "PromptsRepeat",
        "Nearly all prompts are the same, so what is measured says nothing of real traffic.",
    )
    NO_TRAFFIC = "NoTraffic", "No requests since the engines started: nothing is known."
    PAUSED = "Paused", "The proposal length is 0, so acceptance is only seen in trials."
    AUTOREGRESSIVE = (
        "Autoregressive",
        "The engines were restarted without speculation, since that is faster on this traffic.",
    )
    REDUCED = (
        "Reduced",
        "An option of speculation keeps engines from starting; they were started without it.",
    )
    SPECULATION_FAILS = (
        "SpeculationFails",
        "Engines do not start with speculation; they were started without it.",
    )
    METRICS_UNREACHABLE = "MetricsUnreachable", "The engines' numbers cannot be read."
    METRICS_INVALID = "MetricsInvalid", "The engines' numbers can be read but not understood."

    # Tuned
    BEST_MEASURED = "BestMeasured", "The lengths in force are those that the objective wants."
    PINNED = "Pinned", "The bounds leave only one proposal length."
    MEASURING = "Measuring", "Other lengths are being tried under the traffic of today."
    NO_TRIALS = "NoTrials", "The trial share is 0, so other lengths are not measured."
    NOT_ENOUGH_DRAFTS = "NotEnoughDrafts", "Too little traffic to conclude anything."
    RECOMMENDATION = (
        "Recommendation",
        "Another schedule would be faster; mode Recommend only says so.",
    )
    APPLYING = "Applying", "A new schedule is on its way into the engines."
    SCHEDULE_NOT_APPLIED = "ScheduleNotApplied", "An engine has not taken the new schedule up."
    TUNING_OFF = "TuningOff", "spec.tuning.mode is Off: the fixed lengths are played."
    RESTART_NEEDED = (
        "RestartNeeded",
        "The engines were started without a schedule; set the annotation speculation.dev/refresh.",
    )
    NOT_TUNABLE = "NotTunable", "The engines cannot change the length live; the message says why."
    NOTHING_TO_TUNE = "NothingToTune", "The method is none: there is no proposal length."

    # The verdict on a revision that was promoted
    SPEED_NOT_MEASURED = (
        "SpeedNotMeasured",
        "A revision was promoted without its speed known for sure; its message says why.",
    )

    # Reconciling and Stalled take the reason of the condition that they repeat.


START_FAILURES = (
    Reason.CONFIGURATION_REFUSED,
    Reason.OUT_OF_GPU_MEMORY,
    Reason.OUT_OF_MEMORY,
    Reason.MODEL_UNAVAILABLE,
    Reason.DRAFT_DOES_NOT_FIT,
    Reason.KERNEL_FAULT,
    Reason.DEVICE_FAULT,
    Reason.CONTAINER_FAILED,
)
"""Why an engine ended."""

STANDS_IN = (Reason.REDUCED, Reason.SPECULATION_FAILS)
"""What serves is not all that the spec asks for, since that does not start."""

STALLED_FOR_NOW = (Reason.DOWNTIME_NOT_ALLOWED, Reason.PROGRESS_DEADLINE_EXCEEDED)
"""Why a rollout is stalled that may still go on by itself."""

REASONS: dict[ConditionType, tuple[Reason, ...]] = {
    ConditionType.ACCEPTED: (
        Reason.VALID,
        Reason.MEMORY_TIGHT,
        Reason.INVALID,
        Reason.NAME_CONFLICT,
        Reason.CONTESTED,
        Reason.FORBIDDEN,
    ),
    ConditionType.READY: (
        Reason.SERVING,
        Reason.SCALED_TO_ZERO,
        Reason.STARTING,
        Reason.WAITING_FOR_GPUS,
        Reason.NO_NODE_FITS,
        Reason.UNSCHEDULABLE,
        Reason.POD_NOT_ENDING,
        Reason.IMAGE_UNAVAILABLE,
        *START_FAILURES,
        Reason.PODS_NOT_CREATED,
        Reason.ENGINE_HANGS,
        Reason.NAME_NOT_SERVED,
        Reason.NOT_ACCEPTED,
    ),
    ConditionType.PROGRESSING: (
        Reason.ROLLING_OUT,
        Reason.SCALING,
        Reason.ON_TRIAL,
        Reason.SETTLED,
        Reason.NEVER_READY,
        Reason.DOES_NOT_ANSWER,
        Reason.OUTPUT_DIFFERS,
        Reason.TOO_SLOW,
        Reason.IMAGE_UNAVAILABLE,
        Reason.CONTAINER_FAILED,
        Reason.NAME_NOT_SERVED,
        Reason.REJECTED,
        *START_FAILURES,
        Reason.DOWNTIME_NOT_ALLOWED,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
        Reason.POD_NOT_ENDING,
        Reason.NOT_ACCEPTED,
    ),
    ConditionType.SPECULATION_HEALTHY: (
        Reason.HEALTHY,
        Reason.NOT_SPECULATING,
        Reason.NO_ACCEPTANCE,
        Reason.WEAK_ACCEPTANCE,
        Reason.NO_DRAFTS,
        Reason.COUNTERS_INCONSISTENT,
        Reason.REPLICA_OUT_OF_LINE,
        Reason.REPLICAS_DISAGREE,
        Reason.ACCEPTANCE_DECAYS,
        Reason.PROMPTS_REPEAT,
        Reason.NO_TRAFFIC,
        Reason.PAUSED,
        Reason.AUTOREGRESSIVE,
        *STANDS_IN,
        Reason.METRICS_UNREACHABLE,
        Reason.METRICS_INVALID,
    ),
    ConditionType.TUNED: (
        Reason.BEST_MEASURED,
        Reason.AUTOREGRESSIVE,
        Reason.PINNED,
        Reason.MEASURING,
        Reason.NO_TRIALS,
        Reason.NOT_ENOUGH_DRAFTS,
        Reason.NO_TRAFFIC,
        Reason.METRICS_UNREACHABLE,
        Reason.METRICS_INVALID,
        Reason.NO_ACCEPTANCE,
        Reason.WEAK_ACCEPTANCE,
        Reason.RECOMMENDATION,
        Reason.APPLYING,
        Reason.SCHEDULE_NOT_APPLIED,
        Reason.TUNING_OFF,
        Reason.RESTART_NEEDED,
        Reason.NOT_TUNABLE,
        Reason.NOTHING_TO_TUNE,
    ),
}
"""Which reasons a condition may have; Reconciling and Stalled repeat another condition's."""

OF_PROMOTIONS: tuple[Reason, ...] = (Reason.SPEED_NOT_MEASURED,)
"""Reasons that only the verdict on a good revision has, in its ControllerRevision."""


class EventReason(Explained):
    """Reasons of the Events on a SpeculativeModel."""

    REVISION_CREATED = (
        "RevisionCreated",
        "A spec change or a restart off speculation needs new pods.",
    )
    ROLLED_OUT = "RolledOut", "All pods run the newest revision."
    PROMOTED = "Promoted", "A revision on trial has passed; all other pods follow."
    START_FAILED = (
        "StartFailed",
        "Engines do not start as the spec asks; the message says what is done instead.",
    )
    ROLLED_BACK = "RolledBack", "A revision was rejected; the last good one runs."
    ROLLOUT_IN_PLACE = (
        "RolloutInPlace",
        "Pods are replaced where they are; told before, with why no pod more comes first.",
    )
    DOWNTIME_NOT_ALLOWED = (
        "DowntimeNotAllowed",
        "The last pod that serves is not replaced in place: nothing would serve meanwhile.",
    )
    PROGRESS_DEADLINE_EXCEEDED = (
        "ProgressDeadlineExceeded",
        "Nothing has moved for rollout.progressDeadlineSeconds.",
    )
    PROPOSAL_LENGTH_CHANGED = (
        "ProposalLengthChanged",
        "Another length is better at some batch size.",
    )
    FELL_BACK = "FellBack", "Speculation costs more than it brings: the length is 0 now."
    SPECULATION_RESUMED = "SpeculationResumed", "Speculation pays again: the length is above 0."
    FELL_BACK_BY_RESTART = (
        "FellBackByRestart",
        "The engines are restarted without speculation: that pays for the restart.",
    )
    RESTART_WOULD_PAY = (
        "RestartWouldPay",
        "Engines without speculation would be faster; the policy allows no restart.",
    )
    LOOK_REFUSED = "LookRefused", "A look was asked for and cannot be taken; the message says why."
    SPECULATION_FAULTY = "SpeculationFaulty", "Acceptance is what no sound draft has."
    REPLICA_OUT_OF_LINE = "ReplicaOutOfLine", "One pod's numbers are unlike the others'."
    REPLICA_IN_LINE = "ReplicaInLine", "A pod that was out of line is like the others again."
    ENGINE_HANGS = "EngineHangs", "An engine has requests and ends no step."
    POD_REPLACED = "PodReplaced", "A pod whose engine is at fault is replaced."
    POD_NOT_REPLACED = "PodNotReplaced", "A pod at fault stays: no other serves, or a budget."
    POD_NOT_ENDING = "PodNotEnding", "A pod that is Terminating for long holds its GPUs."
    RECOMMENDED = "Recommended", "Mode Recommend would change the schedule."
    SCHEDULE_NOT_APPLIED = "ScheduleNotApplied", "An engine has not taken the new schedule up."
    NAME_CONFLICT = "NameConflict", "An object of a needed name belongs to somebody else."
    MEMORY_TIGHT = "MemoryTight", "Little memory is left for the KV cache."
    REFUSED = "Refused", "The resource cannot be run; the message says what to write instead."
