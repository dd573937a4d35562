"""What was found out about a revision, as it stands in annotations of its ControllerRevision.

Status only copies it. So it outlives the operator, and a bad revision is not tried again: another
value of the annotation `speculation.dev/refresh` makes a new revision, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from speculative_operator.api.conditions import START_FAILURES, Reason
from speculative_operator.api.names import (
    ANNOTATION_VERDICT,
    ANNOTATION_VERDICT_LEAVE_OUT,
    ANNOTATION_VERDICT_MESSAGE,
    ANNOTATION_VERDICT_TIME,
)

SEPARATOR = ": "
SPECULATION = "speculation"
"""What is left out where speculation as a whole keeps engines from starting."""
REASONS_BY_NAME = {reason.value: reason for reason in Reason}


class Standing(StrEnum):
    """On trial a revision has one pod and no say; a good one may serve, a bad one may not."""

    TRIAL = "trial"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class RevisionVerdict:
    """`at` is when it was found, RFC 3339. A bad one has a reason, a good one may have. `leave_out`
    is what a bad one may start without: an option of speculation by vLLM's name, or SPECULATION."""

    standing: Standing
    at: str = ""
    reason: Reason | None = None
    message: str = ""
    leave_out: str | None = None

    @classmethod
    def read(cls, annotations: Mapping[str, str]) -> RevisionVerdict | None:
        """What was written; None where nothing is, or nothing that is understood.

        A bad revision stays bad under a reason that only another version of the operator knows.
        """
        standing, _, reason = annotations.get(ANNOTATION_VERDICT, "").partition(SEPARATOR)
        if standing not in tuple(Standing):
            return None
        known = REASONS_BY_NAME.get(reason)
        if known is None and standing == Standing.BAD:
            known = Reason.REJECTED
        return cls(
            standing=Standing(standing),
            at=annotations.get(ANNOTATION_VERDICT_TIME, ""),
            reason=known,
            message=annotations.get(ANNOTATION_VERDICT_MESSAGE, ""),
            leave_out=annotations.get(ANNOTATION_VERDICT_LEAVE_OUT),
        )

    @property
    def fails_to_start(self) -> bool:
        """Whether its engines end before they serve, so that none should be started."""
        return self.standing is Standing.BAD and self.reason in START_FAILURES

    def annotations(self) -> Mapping[str, str]:
        """All of it, as it is written."""
        words = (self.standing, self.reason) if self.reason is not None else (self.standing,)
        return {
            ANNOTATION_VERDICT: SEPARATOR.join(words),
            ANNOTATION_VERDICT_TIME: self.at,
            ANNOTATION_VERDICT_MESSAGE: self.message,
            **({ANNOTATION_VERDICT_LEAVE_OUT: self.leave_out} if self.leave_out else {}),
        }
