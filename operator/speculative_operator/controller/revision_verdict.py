"""What was found out about a revision, as it stands in annotations of its ControllerRevision.

Status only copies it. So it outlives the operator, and a bad revision is not tried again: another
value of the annotation `speculation.dev/refresh` makes a new revision, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from speculative_operator.api.conditions import Reason
from speculative_operator.api.names import (
    ANNOTATION_VERDICT,
    ANNOTATION_VERDICT_MESSAGE,
    ANNOTATION_VERDICT_TIME,
)

SEPARATOR = ": "
REASONS_BY_NAME = {reason.value: reason for reason in Reason}


class Standing(StrEnum):
    """On trial a revision has one pod and no say; a good one may serve, a bad one may not."""

    TRIAL = "trial"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class RevisionVerdict:
    """`at` is when it was found, RFC 3339. A bad one has a reason, a good one may have."""

    standing: Standing
    at: str = ""
    reason: Reason | None = None
    message: str = ""

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
        )

    def annotations(self) -> Mapping[str, str]:
        """All of it, as it is written."""
        words = (self.standing, self.reason) if self.reason is not None else (self.standing,)
        return {
            ANNOTATION_VERDICT: SEPARATOR.join(words),
            ANNOTATION_VERDICT_TIME: self.at,
            ANNOTATION_VERDICT_MESSAGE: self.message,
        }
