"""Events that tell of the difference between two statuses, or of a trial that was passed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from speculative_operator.api.conditions import (
    STALLED_FOR_NOW,
    STANDS_IN,
    START_FAILURES,
    ConditionStatus,
    ConditionType,
    EventReason,
    Reason,
)
from speculative_operator.api.status import Condition, ModelStatus
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.tuning.verdict import Notice

WARNINGS = (
    (ConditionType.ACCEPTED, Reason.MEMORY_TIGHT, EventReason.MEMORY_TIGHT),
    (ConditionType.PROGRESSING, Reason.DOWNTIME_NOT_ALLOWED, EventReason.DOWNTIME_NOT_ALLOWED),
    (
        ConditionType.PROGRESSING,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
        EventReason.PROGRESS_DEADLINE_EXCEEDED,
    ),
    (ConditionType.PROGRESSING, Reason.POD_NOT_ENDING, EventReason.POD_NOT_ENDING),
)


def refuses(before: ModelStatus | None, after: ModelStatus) -> bool:
    """Whether the user is told of a refusal for the first time."""
    now = _condition(after, ConditionType.ACCEPTED)
    if now is None or now.status is not ConditionStatus.FALSE:
        return False
    return before is None or _message(before, ConditionType.ACCEPTED) != now.message


def promotions(found: Iterable[tuple[str, RevisionVerdict]]) -> Iterator[Notice]:
    """Of the revisions on which a verdict was found in this pass. A rejection shows in status."""
    for key, verdict in found:
        if verdict.standing is Standing.GOOD:
            message = f"Revision {key} has passed its trial. {verdict.message}"
            yield Notice(EventReason.PROMOTED, message)


def not_replaced(kept: Mapping[str, str]) -> Iterator[Notice]:
    """Of pods that a PodDisruptionBudget keeps, by UID in words."""
    for words in kept.values():
        yield Notice(EventReason.POD_NOT_REPLACED, words, warning=True)


def off_unhealthy_devices(pods: Iterable[Pod]) -> Iterator[Notice]:
    """Of pods that go because of their device."""
    for pod in pods:
        if pod.ending is not None and pod.unhealthy is not None:
            device = f"{pod.unhealthy} on node {pod.node} is unhealthy"
            text = f"Pod {pod.name} is to be replaced: its engine has ended, and {device}."
            yield Notice(EventReason.POD_REPLACED, text, warning=True)


def going_in_place(records: Iterable[tuple[str, str | None]]) -> Iterator[Notice]:
    """Of the revisions that have just given up to surge."""
    for key, words in records:
        if words is not None:
            text = f"Revision {key} replaces pods in place. {words}"
            yield Notice(EventReason.ROLLOUT_IN_PLACE, text, warning=True)


def notices(before: ModelStatus | None, after: ModelStatus) -> Iterator[Notice]:
    """What a user following the model should be told once."""
    accepted = _condition(after, ConditionType.ACCEPTED)
    if accepted is not None and accepted.status is ConditionStatus.FALSE:
        if refuses(before, after):
            conflict = accepted.reason == Reason.NAME_CONFLICT
            reason = EventReason.NAME_CONFLICT if conflict else EventReason.REFUSED
            yield Notice(reason, accepted.message, warning=True)
        return
    current = after.revisions.current
    yield from _warnings(before, after)
    stalled = _condition(after, ConditionType.STALLED)
    if stalled is not None and stalled.reason not in STALLED_FOR_NOW:
        if before is None or _message(before, ConditionType.STALLED) != stalled.message:
            yield Notice(_stalled_by(after), stalled.message, warning=True)
        return
    if before is None or before.revisions.current != current:
        yield Notice(EventReason.REVISION_CREATED, f"Revision {current} is being started.")
    if _rolled_out(after) and not (before is not None and _rolled_out(before)):
        yield Notice(EventReason.ROLLED_OUT, f"All pods run revision {current}.")


def _stalled_by(status: ModelStatus) -> EventReason:
    """Whether nothing older serves instead of what was rejected."""
    ready, healthy = (
        _condition(status, kind)
        for kind in (ConditionType.READY, ConditionType.SPECULATION_HEALTHY)
    )
    stopped = ready is not None and ready.reason in START_FAILURES
    stands_in = healthy is not None and healthy.reason in STANDS_IN
    return EventReason.START_FAILED if stopped or stands_in else EventReason.ROLLED_BACK


def _message(status: ModelStatus, kind: ConditionType) -> str | None:
    found = _condition(status, kind)
    return found.message if found is not None else None


def _warnings(before: ModelStatus | None, after: ModelStatus) -> Iterator[Notice]:
    """Each of them once, when its reason appears."""
    for kind, reason, event in WARNINGS:
        found = _condition(after, kind)
        earlier = _condition(before, kind) if before is not None else None
        if found is not None and found.reason == reason != (earlier.reason if earlier else None):
            yield Notice(event, found.message, warning=True)


def moves(status: ModelStatus) -> bool:
    """Whether it says that pods come or go."""
    found = _condition(status, ConditionType.PROGRESSING)
    return found is not None and found.status is ConditionStatus.TRUE


def _rolled_out(status: ModelStatus) -> bool:
    """Whether the current revision is good and no pod runs another one."""
    revisions = status.revisions
    good = revisions.current is not None and revisions.last_good == revisions.current
    return good and all(detail.revision == revisions.current for detail in status.replica_details)


def _condition(status: ModelStatus, kind: ConditionType) -> Condition | None:
    return next((condition for condition in status.conditions if condition.type is kind), None)
