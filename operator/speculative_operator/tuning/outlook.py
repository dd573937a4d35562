"""Why engines are not restarted in the other variant. Nothing is decided here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.balance import price_now
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.restart_words import assumed
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Variant
from speculative_operator.tuning.variant_looks import LEAST_GAIN

NO_START = "no start-up was timed yet"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the other variant would bring.

    gain     expected change of goodput at the load of the last window, as a share; None where
             nothing is known
    owed     seconds of goodput that it would have brought since the last change; below 0 where it
             would have cost some
    price    what `owed` has to exceed; None before a start was timed
    message  why it does not run, without figures
    """

    variant: Variant
    gain: float | None
    owed: float
    price: float | None
    message: str


def outlook(state: State, policy: Policy) -> Outlook | None:
    """None where the user allows no restarts."""
    if not policy.restart.wanted or not policy.choices or policy.mode is TuningMode.OFF:
        return None
    restart = state.restart
    gain = None
    if restart.difference is not None and _forbidden(policy) is None:
        gain = math.expm1(-restart.difference if state.away else restart.difference)
    return Outlook(
        variant=Variant.SPECULATIVE if state.away else Variant.AUTOREGRESSIVE,
        gain=gain,
        owed=restart.owed,
        price=None if restart.startup is None else price_now(state, policy),
        message=_why_not(state, policy, gain),
    )


def _forbidden(policy: Policy) -> str | None:
    """Why nothing is even added up: engines without speculation are against the spec."""
    return None if 0 in policy.arms else "not allowed: tuning.bounds leave no K=0"


def _why_not(state: State, policy: Policy, gain: float | None) -> str:
    looks = state.restart.looking or state.restart.trying
    if gain is None or not policy.restart.allowed or looks:
        return _hindrance(state, policy)
    if state.restart.startup is None:
        return NO_START
    if gain <= (policy.minimum_gain if state.away else LEAST_GAIN):
        return "slower, or not faster by enough" + assumed(state)
    if policy.mode is TuningMode.RECOMMEND:
        return "faster: tuning.mode is Recommend, which only says so"
    return "faster: it has to make up for the price of a restart first" + assumed(state)


def _hindrance(state: State, policy: Policy) -> str:
    """What keeps it from being weighed."""
    forbidden = _forbidden(policy)
    if forbidden is not None:
        return forbidden
    if not policy.restart.allowed:
        return "not allowed: nothing would serve meanwhile, see fallback.allowDowntime"
    if state.restart.startup is None:
        return NO_START
    if state.restart.looking:
        return "a look at speculation is under way"
    if state.restart.trying:
        return "engines without speculation are only being looked at"
    return "not enough is known of it at this load"
