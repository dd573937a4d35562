"""Why K is what it is: what each other K would bring at one batch size, and when it is looked at.

Nothing is decided here. It tells in few numbers what `rule.options` sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from speculative_operator.api.base import LONGEST_PROPOSAL
from speculative_operator.api.status import WhyNot
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.asked import not_tried
from speculative_operator.tuning.guard import given_up
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.rule import HYSTERESIS, Option, best, options
from speculative_operator.tuning.state import Bucket, State


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another K than the one in force, at the batch sizes of one bucket.

    gain         expected change of goodput as a share; None where nothing is known
    error        the standard error of `gain`
    measured_at  Unix time of the last window in which steps at this K were timed, or None
    reason       why it is not in force, and `message` the same with its numbers
    """

    length: int
    gain: float | None
    error: float | None
    measured_at: float | None
    reason: WhyNot
    message: str


@dataclass(frozen=True, slots=True)
class NextLook:
    """When other K are tried next: after `windows` windows with evidence, `at` about that Unix
    time, None where that cannot be said; both None where none is to come, and `message` says why.
    0 windows: a look goes on."""

    windows: int | None
    at: float | None
    message: str


def alternatives(state: State, policy: Policy, name: int) -> tuple[Alternative, ...]:
    """Every other K that the engine is prepared for, smallest first, for the bucket `name`.

    None while engines without speculation are wanted: they play no K that another could be held
    against, and what speculation would bring is told by `outlook`.
    """
    if state.away:
        return ()
    bucket = state.buckets[name]
    lengths = state.lengths(policy)[name]
    everything = replace(policy, low=0, high=LONGEST_PROPOSAL)
    known = {o.k: o for o in options(bucket.length, bucket.cost, lengths, everything)}
    allowed = tuple(option for option in known.values() if option.k in policy.arms)
    chosen = best(allowed, policy, given_up=given_up(state, policy))
    comparison = _Comparison(state, policy, bucket, chosen)
    return tuple(
        comparison.alternative(k, known.get(k)) for k in (0, *policy.choices) if k != bucket.length
    )


def best_gain(found: tuple[Alternative, ...]) -> float | None:
    """The expected gain of the best measured alternative that may be played, as a share; negative
    where all of them are slower, None where none was measured."""
    gains = [
        other.gain
        for other in found
        if other.gain is not None
        and other.reason not in (WhyNot.NOT_MEASURED, WhyNot.IN_DOUBT, WhyNot.OUT_OF_BOUNDS)
    ]
    return max(gains, default=None)


def next_look(state: State, policy: Policy, *, waits: bool) -> NextLook:
    """When the next look is due. `waits`: the last window brought no evidence, so only traffic
    brings it nearer."""
    never = not_tried(state, policy)
    if never is not None:
        return NextLook(None, None, f"none: {never}")
    evidence = None if waits else state.evidence
    suffix = "" if evidence is not None else "; waits for traffic"
    if state.look is not None and not state.look.over:
        arms = sorted({k for trial in state.look.trials for k in trial.arms})
        return NextLook(0, None, f"under way: {', '.join(f'K={k}' for k in arms)}{suffix}")
    windows = max(state.next_look - state.windows, 1)
    at = evidence.measured_at + windows * evidence.seconds if evidence is not None else None
    when = f"in {windows} windows with evidence" if windows > 1 else "after the next window"
    return NextLook(windows, at, when + suffix)


TEXTS: Mapping[WhyNot, str] = {
    WhyNot.FIXED: "spec.tuning.mode is Off: the fixed lengths are played",
    WhyNot.OUT_OF_BOUNDS: "not within spec.tuning.bounds",
    WhyNot.RESTART_NEEDED: "not measured: K cannot be changed live",
    WhyNot.FAULTY_DRAFT: "the draft is faulty: only tried now and then, for recovery",
    WhyNot.NOT_MEASURED: "not measured well enough yet: {trials}",
    WhyNot.IN_DOUBT: "its last time contradicts those before: {trials}",
    WhyNot.RECOMMENDED: "measured {moved}: advised, spec.tuning.mode is Recommend",
    WhyNot.WAITS_FOR_TRAFFIC: "measured {moved}: played once traffic is back at these batch sizes",
    WhyNot.ANOTHER_IS_FASTER: "measured {moved}: another one is better still",
    WhyNot.LONGER_STEPS: "measured {moved}, with steps longer by {step}; objective Latency",
    WhyNot.LOSES_TOO_MUCH: "measured {moved}, with steps shorter by {step}: loses too much",
    WhyNot.SLOWER: "measured {moved}",
    WhyNot.BELOW_MINIMUM_GAIN: "measured {moved}: below the minimum gain",
    WhyNot.NO_SURE_GAIN: "{moved}: within the error or the hysteresis",
}
"""Percentages are of goodput, ± is one standard error."""

GIVEN_UP = "the draft is faulty: advised, spec.tuning.mode is Recommend"
"""Instead of what was measured, if anything was."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One bucket and its K against the others; `chosen` is what evidence asks for, if anything."""

    state: State
    policy: Policy
    bucket: Bucket
    chosen: Option | None

    def alternative(self, k: int, option: Option | None) -> Alternative:
        reason = self._forbidden(k) or self._compared(option)
        gain = error = None
        moved = step = ""
        if option is not None and reason is not WhyNot.RESTART_NEEDED:
            gain = math.expm1(option.plain)
            error = (1.0 + gain) * option.error
            moved = f"{'faster' if gain > 0 else 'slower'} by {abs(gain):.1%} ± {error:.1%}"
            step = f"{abs(math.expm1(option.step)):.0%}"
        never = not_tried(self.state, self.policy)
        trials = "trials pending" if never is None else f"no trials, {never}"
        advised = reason is WhyNot.RECOMMENDED and k == self.policy.shortest
        text = GIVEN_UP if advised and given_up(self.state, self.policy) else TEXTS[reason]
        message = text.format(moved=moved, step=step, trials=trials)
        timed = self.bucket.timed.get(k)
        measured_at = timed.at if timed is not None else None
        return Alternative(k, gain, error, measured_at, reason, message)

    def _forbidden(self, k: int) -> WhyNot | None:
        """Why K may not be played, whatever it would bring."""
        if self.policy.mode is TuningMode.OFF:
            return WhyNot.FIXED
        if k not in self.policy.arms:
            return WhyNot.OUT_OF_BOUNDS
        if not self.policy.live:
            return WhyNot.RESTART_NEEDED
        if self.state.fault is None:
            return None
        if self.chosen is not None and self.chosen.k == k:
            return self._better(self.chosen)
        return WhyNot.FAULTY_DRAFT if k else None

    def _compared(self, option: Option | None) -> WhyNot:
        """What measurement says of a K that may be played."""
        if option is None or not option.measured:
            return WhyNot.NOT_MEASURED
        if option.doubted:
            return WhyNot.IN_DOUBT
        if option == self.chosen or option.gain > HYSTERESIS:
            return self._better(option)
        timed = self.state.timed_anywhere(option.k)
        return self._worse(option) if timed else WhyNot.NOT_MEASURED

    def _worse(self, option: Option) -> WhyNot:
        """Why a K is no better than the one in force."""
        if self.policy.throughput_loss and not self.chosen and option.step < -HYSTERESIS:
            return WhyNot.LOSES_TOO_MUCH
        if option.plain < -option.error:
            return WhyNot.SLOWER
        below = option.gain <= 0.0 < option.plain
        return WhyNot.BELOW_MINIMUM_GAIN if below else WhyNot.NO_SURE_GAIN

    def _better(self, option: Option) -> WhyNot:
        """Why a K that is surely better is not in force yet."""
        if option != self.chosen:
            return WhyNot.ANOTHER_IS_FASTER if self.chosen else WhyNot.LONGER_STEPS
        told = self.policy.mode is TuningMode.RECOMMEND and self.bucket.advised == option.k
        return WhyNot.RECOMMENDED if told else WhyNot.WAITS_FOR_TRAFFIC
