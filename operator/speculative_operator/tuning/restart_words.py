"""What is told of restarts off speculation and back."""

from __future__ import annotations

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.balance import price_now
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State


def falls_back(gain: float, state: State, policy: Policy) -> str:
    """The sum has come to pay for the restart."""
    than = f"K={state.restart.reference}" if state.restart.reference else "the best live length"
    return (
        f"engines are restarted without speculation: goodput {gain:+.0%} over {than}"
        f"{assumed(state)}; {_sum(state, policy)}"
    )


def assumed(state: State) -> str:
    """Where nothing but the drafter's kind tells of engines without speculation."""
    measured = not state.restart.reference or state.restart.plain
    return "" if measured else " (assumed of this kind of drafter, not measured yet)"


def comes_back(gain: float, state: State, policy: Policy) -> str:
    """The same the other way round, or what a look at one replica has measured."""
    why = "measured by a look" if state.restart.looking else _sum(state, policy)
    return f"engines are restarted with speculation: goodput {gain:+.0%} at this load; {why}"


def _sum(state: State, policy: Policy) -> str:
    restart = state.restart
    return (
        f"{restart.owed:.0f} s of goodput were lost so far, a restart costs "
        f"{price_now(state, policy):.0f} s (start-up {restart.startup or 0.0:.0f} s)"
    )


def looks_at_speculation() -> str:
    """A look that takes the only replica."""
    return "a look at speculation: engines are restarted with it for a few windows"


def looks_without_it() -> str:
    """Nothing else tells how fast engines without speculation are."""
    return (
        "a look at engines without speculation: K cannot be changed live, so only a restart tells "
        "what speculation brings"
    )


def in_vain(gain: float) -> str:
    """The look is over."""
    return f"the look at engines without speculation is over: goodput {gain:+.0%}; they speculate"


def look_failed(gain: float) -> str:
    """The only replica goes back."""
    return f"the look at speculation is over: goodput {gain:+.0%} without it"


def never_came() -> str:
    """Pods without speculation that cannot be scheduled or do not start."""
    return "no engine without speculation became ready: the speculative ones go on"


def never_came_back() -> str:
    """Pods with speculation, on the way back or for a look, likewise."""
    return "no engine with speculation became ready: engines without it are started again"


def forbidden() -> str:
    """The user's word."""
    return "spec.tuning allows no engines without speculation: they are restarted with it"


def would_pay(gain: float, state: State, policy: Policy) -> str:
    """Advice, and what stands in the way."""
    if policy.mode is TuningMode.RECOMMEND:
        way = "mode Auto with fallback.level: Restart does it"
    elif policy.restart.wanted:
        way = "it would leave nothing serving: see fallback.allowDowntime and rollout.strategy"
    else:
        way = "fallback.level: Restart does it"
    return (
        f"engines without speculation would bring goodput {gain:+.0%}{assumed(state)} and pay a "
        f"restart; {way}"
    )


def outcome(before: float, after: float) -> str:
    """What became of goodput, tokens a second and replica."""
    return f"goodput {before:.1f} -> {after:.1f} tokens/s ({after / before - 1.0:+.0%})"
