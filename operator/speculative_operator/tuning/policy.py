"""What the user allows the tuner: the spec's part of a decision. Evidence is the other part."""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.schedule import Table


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """A window closes at `drafts` and `least_seconds`, at the latest at `most_seconds`."""

    drafts: int = 400
    least_seconds: float = 5.0
    most_seconds: float = 60.0

    def times(self, seconds: float, drafts: float) -> int:
        """How many of the shortest windows would have closed in so much time and evidence; at
        least one."""
        return max(1, min(int(seconds / self.least_seconds), int(drafts / self.drafts)))


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """Whether engines may be restarted without speculation, and what that takes.

    wanted    the user allows such restarts
    downtime  also one that leaves nothing serving
    sensor    one of several replicas may stay speculative
    surge     a rollout starts one pod more first; None where that depends on free GPUs
    drain     seconds that a pod has for the requests that run as it is told to end
    """

    wanted: bool = False
    downtime: bool = False
    sensor: bool = False
    surge: bool | None = False
    replicas: int = 1
    drain: float = 0.0

    @property
    def allowed(self) -> bool:
        """Whether a restart may be done with these replicas. The last one that serves is taken only
        after one pod more has started."""
        return self.wanted and (self.downtime or self.surge is not False or self.replicas > 1)


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one model's tuning, all live.

    choices       proposal lengths above 0 that the engine is prepared for, ascending; () for
                  method none. 0 is always possible.
    initial       K of a new revision: 0 or one of `choices`
    low, high     the user's bounds of K, both in
    minimum_gain  goodput over K=0 that keeps speculation on, as a share (0.05 is 5%)
    throughput_loss  share of the best goodput that may be given up for shorter steps; 0: none,
                  which is objective Throughput
    trial_share   most of the steps that trials may take, as a share; 0 forbids trials
    max_num_seqs  largest batch size, where a table ends
    fixed         the table played in mode Off
    prior         what is known of the method's kind of drafter
    live          whether K can change while the engines serve: False where they were started
                  without a schedule, or say that they cannot be tuned
    """

    mode: TuningMode
    method: str
    choices: tuple[int, ...]
    initial: int
    max_num_seqs: int
    fixed: Table
    prior: Prior
    low: int = 0
    high: int = 64
    minimum_gain: float = 0.05
    throughput_loss: float = 0.0
    trial_share: float = 0.10
    window: WindowLimits = WindowLimits()
    live: bool = True
    restart: RestartLimits = RestartLimits()

    @property
    def hands_off(self) -> bool:
        """Whether engines are watched only: K is not to be changed live, and nothing is tried."""
        return self.mode is TuningMode.OFF or not self.live

    @property
    def may_restart(self) -> bool:
        """Whether engines may be restarted to the other variant; else it is only advised."""
        return self.restart.allowed and self.mode is TuningMode.AUTO

    @property
    def arms(self) -> tuple[int, ...]:
        """Every K that may be played, ascending; never empty.

        Bounds between two choices leave the nearest choice below, since an engine has graphs for
        its choices only.
        """
        possible = (0, *self.choices)
        inside = tuple(k for k in possible if self.low <= k <= self.high)
        return inside or (max((k for k in possible if k <= self.high), default=0),)

    @property
    def shortest(self) -> int:
        """The least that the bounds allow to propose."""
        return self.arms[0]

    @property
    def pinned(self) -> int | None:
        """The only K that the bounds leave, or None."""
        return self.shortest if len(self.arms) == 1 else None

    @property
    def start_table(self) -> Table:
        """The initial K at every batch size, moved into the bounds where it can be moved."""
        first = self.nearest_arm(self.initial) if self.live else self.initial
        return ((1, self.max_num_seqs, first),)

    def nearest_arm(self, k: int) -> int:
        """The arm nearest to K, the smaller of two."""
        return min(self.arms, key=lambda arm: (abs(arm - k), arm))
