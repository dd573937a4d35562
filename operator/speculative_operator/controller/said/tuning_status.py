"""The part of status that tells of tuning, from the tuner's view. Pure.

Before the tuner has a view of a revision, what status said of it before stands; a revision of which
nothing was ever said starts with the tuner's first words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from speculative_operator.api.conditions import ConditionType, Reason
from speculative_operator.api.speculation import Method
from speculative_operator.api.status import (
    MOST_ALTERNATIVES,
    MOST_DECISIONS,
    MOST_ROWS,
    Alternative,
    BatchLength,
    DecisionRecord,
    Evidence,
    Mode,
    ModelStatus,
    NextLook,
    OtherVariant,
)
from speculative_operator.controller.seen.times import rfc3339
from speculative_operator.controller.tuner.ports import ReplicaView, TuningView
from speculative_operator.controller.wanted.policy import first_decision
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.resources.controller_revision import RecordedRevision
from speculative_operator.tuning import alternatives
from speculative_operator.tuning import verdict as tuning
from speculative_operator.tuning.outlook import Outlook
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.schedule import Table, length_at
from speculative_operator.tuning.variant import Variant
from speculative_operator.tuning.verdict import Verdict

TUNING_CONDITIONS = (ConditionType.SPECULATION_HEALTHY, ConditionType.TUNED)
REASONS_BY_NAME = {reason.value: reason for reason in Reason}


@dataclass(frozen=True)
class TuningPart:
    """What is shown; `replicas` go by pod UID."""

    verdicts: Mapping[ConditionType, Verdict]
    mode: Mode | None
    proposal_length: int | None
    schedule: tuple[BatchLength, ...]
    evidence: Evidence = field(default_factory=Evidence)
    decisions: tuple[DecisionRecord, ...] = ()
    replicas: Mapping[str, ReplicaView] = field(default_factory=dict)


def tuning_part(
    revision: RecordedRevision,
    tuned: str,
    policy: Policy,
    view: TuningView | None,
    before: ModelStatus | None,
) -> TuningPart:
    """The newest that is known of the tuning of a revision, of which the tuner tells under the key
    `tuned`, usually that of its speculative variant."""
    key, facts = revision.key, revision.facts
    if view is not None and view.key == tuned:
        plain = facts.stands_in_for is not None
        table = ((1, facts.max_num_seqs, 0),) if plain else view.table
        return TuningPart(
            verdicts=_verdicts(view.healthy, view.tuned),
            mode=_mode(facts, view.main_length),
            proposal_length=0 if plain else view.main_length,
            schedule=_rows(table),
            evidence=_evidence(view),
            decisions=tuple(_decision(change) for change in view.decisions[:MOST_DECISIONS]),
            replicas=view.replicas,
        )
    first = first_decision(policy)
    verdicts = _verdicts(first.healthy, first.tuned)
    if before is not None and key in (before.revisions.current, before.revisions.last_good):
        return _as_before(before, verdicts)
    return TuningPart(
        verdicts=verdicts,
        mode=_mode(facts, length_at(first.table, 1)),
        proposal_length=length_at(first.table, 1),
        schedule=_rows(first.table),
    )


def _as_before(before: ModelStatus, first: Mapping[ConditionType, Verdict]) -> TuningPart:
    """What status says; the `first` verdicts where it has none that is understood."""
    told = {
        condition.type: Verdict(
            condition.status, REASONS_BY_NAME[condition.reason], condition.message
        )
        for condition in before.conditions
        if condition.type in TUNING_CONDITIONS and condition.reason in REASONS_BY_NAME
    }
    return TuningPart(
        verdicts={**first, **told},
        mode=before.mode,
        proposal_length=before.proposal_length,
        schedule=before.schedule,
        evidence=before.evidence,
        decisions=before.decisions,
    )


def _verdicts(healthy: Verdict, tuned: Verdict) -> Mapping[ConditionType, Verdict]:
    return dict(zip(TUNING_CONDITIONS, (healthy, tuned), strict=True))


def _mode(facts: RevisionFacts, length: int) -> Mode:
    """By K at the batch size that is seen most."""
    if facts.method is Method.NONE or facts.stands_in_for is not None:
        return Mode.AUTOREGRESSIVE
    return Mode.SPECULATIVE if length else Mode.FALLBACK


def _rows(table: Table) -> tuple[BatchLength, ...]:
    return tuple(
        BatchLength(min_batch=low, max_batch=high, proposal_length=k)
        for low, high, k in table[:MOST_ROWS]
    )


def _evidence(view: TuningView) -> Evidence:
    measured = view.evidence
    if measured is None:
        return Evidence(
            next_look=_next_look(view.next_look), other_variant=_other_variant(view.outlook)
        )
    return Evidence(
        measured_at=rfc3339(measured.measured_at),
        drafts=measured.drafts,
        acceptance=measured.acceptance,
        acceptance_length=measured.acceptance_length,
        position_acceptance=measured.positions,
        goodput=measured.goodput,
        speedup=measured.speedup,
        alternatives=tuple(
            _alternative(other, measured.goodput) for other in view.alternatives[:MOST_ALTERNATIVES]
        ),
        next_look=_next_look(view.next_look),
        other_variant=_other_variant(view.outlook),
    )


def _alternative(other: alternatives.Alternative, goodput: float | None) -> Alternative:
    expected = None
    if goodput is not None and other.gain is not None:
        expected = goodput * (1 + other.gain)
    return Alternative(
        proposal_length=other.length,
        goodput=expected,
        gain_percent=_percent(other.gain),
        error_percent=_percent(other.error),
        measured_at=_time(other.measured_at),
        reason=other.reason,
        message=other.message,
    )


def _next_look(look: alternatives.NextLook | None) -> NextLook | None:
    if look is None:
        return None
    return NextLook(windows=look.windows, time=_time(look.at), message=look.message)


def _other_variant(found: Outlook | None) -> OtherVariant | None:
    if found is None:
        return None
    return OtherVariant(
        speculative=found.variant is Variant.SPECULATIVE,
        gain_percent=_percent(found.gain),
        owed_seconds=round(found.owed),
        price_seconds=None if found.price is None else round(found.price),
        message=found.message,
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _time(unix: float | None) -> str | None:
    return None if unix is None else rfc3339(unix)


def _decision(change: tuning.Change) -> DecisionRecord:
    return DecisionRecord(
        time=rfc3339(change.at),
        min_batch=change.low,
        max_batch=change.high,
        before=change.before,
        after=change.after,
        reason=change.reason,
        message=change.message,
        outcome=change.outcome or None,
    )
