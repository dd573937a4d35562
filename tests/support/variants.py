"""Windows of a model that is restarted when the tuner says so, and what that loses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion, Running
from speculative_operator.tuning.policy import Policy, RestartLimits
from speculative_operator.tuning.schedule import length_at
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Variant
from speculative_operator.tuning.window import Window
from tests.support.windows import STEP_MS, Traffic

WINDOW_SECONDS = 5.0
RESTART_WINDOWS = 18
"""Of nothing, as in the benchmark of the facts."""

STARTUP = RESTART_WINDOWS * WINDOW_SECONDS
TAX = 0.137
"""What K=0 costs over engines without speculation in these plays: -12% goodput."""

ONE = RestartLimits(wanted=True, downtime=True)
"""One replica, in place: a restart is downtime."""

PAIR = RestartLimits(wanted=True, replicas=2)
SENSING = replace(PAIR, sensor=True)


def costing(factor: float) -> dict[int, float]:
    """Step times with which speculation brings `factor` times less than with the usual ones."""
    return {k: ms * factor if k else ms for k, ms in STEP_MS.items()}


@dataclass
class Play:
    """A model under one policy, window by window; `tax` is a share of the step time at K=0.

    With several replicas it is as if all were restarted at once, each losing its own time.
    """

    policy: Policy
    tax: float = TAX
    seed: int | None = None
    now: float = 0.0
    asked: str | None = None
    moves: list[Variant] = field(default_factory=list)
    tokens: float = 0.0
    without: float = 0.0
    """Tokens that engines without speculation would have brought in the same time."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed) if self.seed is not None else None
        self.runs = Variant.SPECULATIVE
        self.sensor = False
        self._down = 0
        self._sensor_down = 0
        self.decision = decide(None, State(), self.policy, Occasion(self.now))

    def play(self, traffic: Sequence[Traffic]) -> Decision:
        """The last decision after so many windows of traffic."""
        for now in traffic:
            self._window(now)
        return self.decision

    def idle(self, seconds: float) -> None:
        """No requests."""
        self.now += seconds

    def restart_operator(self, state: State) -> None:
        """A new one, which knows what was saved."""
        self.decision = decide(None, state, self.policy, Occasion(self.now))

    @property
    def loss(self) -> float:
        """Share of those tokens that was missing."""
        return 1 - self.tokens / self.without

    def _window(self, traffic: Traffic) -> None:
        self.now += WINDOW_SECONDS
        self.without += self._goodput(traffic, Variant.AUTOREGRESSIVE) * WINDOW_SECONDS
        speculative, plain = self._seen(traffic)
        before = self.decision
        self.decision = decide(
            speculative,
            before.state,
            self.policy,
            Occasion(
                self.now,
                self.asked,
                Running(
                    speculative=int(speculative is not None),
                    autoregressive=int(plain is not None),
                    startup=STARTUP,
                    window=plain,
                ),
            ),
        )
        self._follow()

    def _seen(self, traffic: Traffic) -> tuple[Window | None, Window | None]:
        """The windows of both kinds of engines, and their tokens."""
        if self._down:
            self._down -= 1
            return None, None
        share = 1 / self.policy.restart.replicas if self.sensor else 0.0
        beside = self.sensor and not self._sensor_down
        self._sensor_down = max(self._sensor_down - 1, 0)
        rate = (1 - share) * self._goodput(traffic, self.runs)
        rate += share * beside * self._goodput(traffic, Variant.SPECULATIVE)
        self.tokens += rate * WINDOW_SECONDS
        if self.runs is Variant.SPECULATIVE:
            return traffic.played(self.decision, self.chance), None
        played = traffic.played(self.decision, self.chance) if beside else None
        return played, self._plain(traffic).window({0: traffic.steps}, self.chance)

    def _follow(self) -> None:
        """The cluster does what was decided; a sensor is one pod of several."""
        if self.decision.variant is not self.runs:
            self.runs = self.decision.variant
            self.sensor = self.decision.sensor
            self.moves.append(self.runs)
            self._down = RESTART_WINDOWS
        elif self.decision.sensor != self.sensor:
            self.sensor = self.decision.sensor
            self._sensor_down = RESTART_WINDOWS

    def _plain(self, traffic: Traffic) -> Traffic:
        times = traffic.step_ms or STEP_MS
        return replace(traffic, step_ms={0: times[0] / (1 + self.tax)})

    def _goodput(self, traffic: Traffic, variant: Variant) -> float:
        """Tokens a second, without noise."""
        if variant is Variant.AUTOREGRESSIVE:
            times: dict[int, float] = {0: (traffic.step_ms or STEP_MS)[0] / (1 + self.tax)}
            k = 0
        else:
            times = dict(traffic.step_ms or STEP_MS)
            k = length_at(self.decision.table, traffic.batch)
        return 1000 * traffic.batch * (1 + sum(traffic.acceptance[:k])) / times[k]
