"""What the tuner needs of the world, as small ports, so that it runs the same in virtual time.

An implementation translates its own errors: EngineSilent from engines, ClusterFault from the
cluster. Each call ends in bounded time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from speculative_operator.api.tuning import MetricsSource
from speculative_operator.tuning.alternatives import Alternative, NextLook
from speculative_operator.tuning.memory import Memory
from speculative_operator.tuning.outlook import Outlook
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import Table
from speculative_operator.tuning.tally import Tally
from speculative_operator.tuning.variant import VariantChoice
from speculative_operator.tuning.verdict import Change, Evidence, Notice, Verdict


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of a revision. `address` is where its engine is reached: a pod IP. `routed` says that
    requests reach it: one on trial may be ready and off the Service."""

    uid: str
    name: str
    address: str
    ready: bool
    routed: bool


@dataclass(frozen=True, slots=True)
class TunedModel:
    """One model at its serving revision.

    `key` is the key of the revision's speculative variant, `replicas` are its pods, and `plain`
    those of the autoregressive one. `scheduled` says whether its engines were started with a
    schedule (only then can they be tuned), `restart_helps` whether they were not and new ones would
    be, `look` is the value of the annotation that asks for trials at once, `startup` how many
    seconds its pods took to be Ready. `replaces` allows to replace pods whose engines are at fault,
    `downtime` also the last one that serves. `source` is where their numbers are read.
    """

    uid: str
    namespace: str
    name: str
    key: str
    policy: Policy
    scheduled: bool
    replicas: tuple[Replica, ...]
    look: str | None = None
    restart_helps: bool = False
    plain: tuple[Replica, ...] = ()
    startup: float | None = None
    replaces: bool = False
    downtime: bool = False
    source: MetricsSource = MetricsSource.PODS


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """What is known of one engine. `tunable` is None while nothing was read of it."""

    tunable: bool | None = None
    schedule: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class TuningView:
    """All that status shows of one model's tuning. `table` is what the engines play or will play,
    `main_length` K at the batch size that is seen most, `decisions` the last ones, newest first,
    `alternatives` other K at the batch size that is seen most, `tally` what this process has
    counted, `replicas` by pod UID. `choice` is what should run, as it is saved: a new operator says
    the same. `outlook` is on the other variant. `hung` are engines that hang, by pod UID, in words,
    `replace` pods that are to be replaced, as it is saved."""

    key: str
    table: Table
    main_length: int
    healthy: Verdict
    tuned: Verdict
    choice: VariantChoice
    evidence: Evidence | None = None
    decisions: tuple[Change, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    next_look: NextLook | None = None
    outlook: Outlook | None = None
    tally: Tally = field(default_factory=Tally)
    replicas: Mapping[str, ReplicaView] = field(default_factory=dict)
    hung: Mapping[str, str] = field(default_factory=dict)
    replace: frozenset[str] = frozenset()


class Clock(Protocol):
    """Unix time, and waiting in it."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Fleet(Protocol):
    """The models that this operator tunes, as the watch caches know them now."""

    def targets(self) -> Sequence[TunedModel]: ...


class Pages(Protocol):
    """Reads engines."""

    async def read(self, model: TunedModel, replica: Replica) -> Page:
        """The engine's page; EngineSilent when there is none that can be understood."""
        ...


class Schedules(Protocol):
    """The schedule file of a model's revision."""

    async def read(self, model: TunedModel) -> str | None:
        """The text in force; None while there is none. From the watch caches: no request."""
        ...

    async def write(self, model: TunedModel, text: str, attempt: int) -> None:
        """Puts the text into the revision's schedule ConfigMap unless it is there already, and
        `<hash>.<attempt>` onto its pods, so that the kubelet hands it on at once."""
        ...


class MemoryStore(Protocol):
    """The ConfigMap `<name>-tuning`."""

    async def load(self, model: TunedModel) -> Memory:
        """What was saved; an empty memory for a new model or a text that cannot be read."""
        ...

    async def save(self, model: TunedModel, memory: Memory) -> None: ...

    def is_empty(self, model: TunedModel) -> bool:
        """Whether it could be written and nothing is in it: never saved, or somebody deleted it."""
        ...


class Report(Protocol):
    """Takes what the tuner has to say; status and Events are written by others."""

    def tuning(self, model: TunedModel, view: TuningView) -> None: ...

    def notice(self, model: TunedModel, notice: Notice) -> None: ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that the tuner talks to."""

    clock: Clock
    fleet: Fleet
    pages: Pages
    schedules: Schedules
    memories: MemoryStore
    report: Report
