"""Values of the conditions SpeculationHealthy and Tuned, from what is known of one revision.

What the operator cannot do or see at the moment (engines silent, a schedule on its way) is laid
over them by the tuner's loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.explain import advice_in_words, length_in_words
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.restart import sensing
from speculative_operator.tuning.state import State
from speculative_operator.tuning.verdict import Verdict
from speculative_operator.tuning.window import NoEvidence

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def health(state: State, policy: Policy) -> Verdict:
    """Whether drafts are made and accepted as a sound draft's are."""
    if not policy.choices:
        return Verdict(UNKNOWN, Reason.NOT_SPECULATING, "The method is none.")
    if state.away and not sensing(state, policy):
        return Verdict(UNKNOWN, Reason.AUTOREGRESSIVE, _unseen(state))
    return _wrong(state) or _sound(state, policy)


def _unseen(state: State) -> str:
    """What was at fault is so until drafts are seen again: it may be why they run so."""
    before = "" if state.fault is None else f" With it: {state.fault.message}"
    return f"The engines run without speculation.{before}"


def _sound(state: State, policy: Policy) -> Verdict:
    if state.evidence is None:
        return Verdict(UNKNOWN, Reason.NO_TRAFFIC, "No window with enough drafts yet.")
    table = policy.fixed if policy.mode is TuningMode.OFF else state.table
    if not any(k for _, _, k in table):
        return _paused(policy)
    return Verdict(TRUE, Reason.HEALTHY, "Drafts are accepted as a sound draft's are.")


def _paused(policy: Policy) -> Verdict:
    """At K=0 only trials show the draft, and there are none where K is fixed or they have no
    share."""
    tried = policy.mode is not TuningMode.OFF and policy.trial_share and len(policy.arms) > 1
    if not tried:
        return Verdict(UNKNOWN, Reason.PAUSED, "K=0: no drafts are made, not even in trials.")
    return Verdict(TRUE, Reason.PAUSED, "K=0: drafts are only made in trials, soundly.")


def _wrong(state: State) -> Verdict | None:
    """What is wrong, worst first: with the counters, the draft, a replica, the traffic."""
    if state.broken is not None and state.broken.said:
        return Verdict(FALSE, state.broken.reason, state.broken.message)
    if state.fault is not None:
        return Verdict(FALSE, state.fault.reason, state.fault.message)
    return _doubtful(state)


def _doubtful(state: State) -> Verdict | None:
    """Evidence that cannot all be believed, although the draft as a whole works. Engines that age
    are unlike each other once one of them is younger."""
    if state.aging.message:
        status = FALSE if state.aging.proven else UNKNOWN
        return Verdict(status, Reason.ACCEPTANCE_DECAYS, state.aging.message)
    odd = state.replicas.odd
    if odd:
        others = len({standing.uid for standing in odd}) - 1
        more = f" And {others} more like it." if others else ""
        return Verdict(FALSE, Reason.REPLICA_OUT_OF_LINE, odd[0].text + more)
    if state.replicas.disagreement is not None:
        return Verdict(UNKNOWN, Reason.REPLICAS_DISAGREE, state.replicas.disagreement)
    if state.repeats.said:
        return Verdict(
            UNKNOWN,
            Reason.PROMPTS_REPEAT,
            "Nearly all prompts repeat each other, as a load generator or a health check sends "
            "them; acceptance and K are of these, not of real traffic. Let real prompts come.",
        )
    return None


def tuned(state: State, policy: Policy) -> Verdict:
    """Whether the lengths in force are the best that measurement knows."""
    words = length_in_words(state) if state.table else ""
    if not policy.choices:
        return Verdict(UNKNOWN, Reason.NOTHING_TO_TUNE, "The method is none.")
    if policy.mode is TuningMode.OFF:
        return Verdict(UNKNOWN, Reason.TUNING_OFF, "The fixed lengths are played.")
    if state.away:
        return _without(state)
    if state.fault is not None:
        return Verdict(FALSE, state.fault.reason, f"{words}: the draft is faulty.")
    if policy.pinned is not None:
        return Verdict(TRUE, Reason.PINNED, f"{words}: the bounds leave no other.")
    return _measured(state, policy, words)


def _without(state: State) -> Verdict:
    if state.restart.trying:
        return Verdict(FALSE, Reason.MEASURING, "Engines without speculation are being looked at.")
    return Verdict(TRUE, Reason.AUTOREGRESSIVE, "Engines without speculation are faster.")


def _measured(state: State, policy: Policy, words: str) -> Verdict:
    """How far measuring has come."""
    if not state.buckets:
        return Verdict(UNKNOWN, Reason.NOT_ENOUGH_DRAFTS, f"{words}: too little traffic so far.")
    if policy.mode is TuningMode.RECOMMEND and (advice := advice_in_words(state, policy)):
        return Verdict(FALSE, Reason.RECOMMENDATION, f"{words} is not the best: {advice}.")
    if not policy.trial_share:
        return Verdict(UNKNOWN, Reason.NO_TRIALS, f"{words}; what others bring is not measured.")
    if not state.settled:
        return Verdict(FALSE, Reason.MEASURING, f"{words}; others are being tried.")
    if policy.throughput_loss:
        message = (
            f"{words}: the shortest steps within {policy.throughput_loss:.0%} of the highest "
            "measured goodput."
        )
        return Verdict(TRUE, Reason.BEST_MEASURED, message)
    return Verdict(TRUE, Reason.BEST_MEASURED, f"{words}: the highest measured goodput.")


@dataclass(frozen=True, slots=True)
class Situation:
    """What stands in the way of tuning at the moment, most telling last.

    gap          the last window gave no evidence, and why
    not_tunable  why no ready engine can change its length, or None
    unscheduled  the engines were started without a schedule, and new ones would have one
    applying     a new table is on its way
    late         it should have been in force by now
    """

    gap: NoEvidence | None = None
    not_tunable: str | None = None
    unscheduled: bool = False
    applying: bool = False
    late: bool = False


def _watched(why: str, policy: Policy) -> str:
    """What is lost where K cannot change live, and what is left."""
    lost = (
        f"The length cannot be changed live: {why}. It stays as it is, and what another would "
        "bring is not known: to try one, set another speculation.proposalLength.capacity."
    )
    if not policy.restart.wanted:
        return f"{lost} fallback.level: Restart also tries engines without speculation."
    if not policy.restart.allowed:
        return f"{lost} Engines without speculation are not tried: nothing would serve meanwhile."
    return f"{lost} Engines without speculation are weighed, see status.evidence.otherVariant."


def overlaid(
    healthy: Verdict, tuned: Verdict, situation: Situation, policy: Policy
) -> tuple[Verdict, Verdict]:
    """Both conditions as they are told: what was concluded before does not hold while the engines
    cannot be read, and is of no use while they cannot be tuned."""
    gap = situation.gap
    if gap is not None and gap.reason in (Reason.METRICS_UNREACHABLE, Reason.METRICS_INVALID):
        healthy = tuned = Verdict(
            UNKNOWN, gap.reason, f"No evidence: {gap.message}; nothing was changed."
        )
    if not policy.choices or policy.mode is TuningMode.OFF:
        return healthy, tuned
    if situation.unscheduled:
        message = (
            "Tuning needs a restart: set the annotation speculation.dev/refresh to a new value."
        )
        return healthy, Verdict(FALSE, Reason.RESTART_NEEDED, message)
    if situation.not_tunable is not None:
        return healthy, Verdict(FALSE, Reason.NOT_TUNABLE, _watched(situation.not_tunable, policy))
    if situation.late:
        message = "An engine does not report the new schedule; the kubelet's next sync is awaited."
        return healthy, Verdict(FALSE, Reason.SCHEDULE_NOT_APPLIED, message)
    if situation.applying:
        return healthy, Verdict(FALSE, Reason.APPLYING, "A new schedule is on its way.")
    return healthy, tuned
