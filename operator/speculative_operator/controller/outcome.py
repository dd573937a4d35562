"""What a pass that ended in an error means for the next one: the one switch over our errors."""

from __future__ import annotations

import logging

from speculative_operator.cluster.manifests import Reference
from speculative_operator.cluster.queue import BackOff, Done, Outcome
from speculative_operator.errors import ClusterFault, NotAllowed, NotOurs

OTHERS_PAUSE_SECONDS = 60.0
"""Foreign objects, quotas and policies are not watched, so somebody has to look again."""

logger = logging.getLogger(__name__)


def outcome_of(error: Exception, model: Reference) -> Outcome:
    """Later for what only others can change, back-off for faults; logged here and nowhere else."""
    match error:
        case NotOurs() | NotAllowed():
            logger.info("%s: %s", model, error)
            return Done(again_in=OTHERS_PAUSE_SECONDS)
        case ClusterFault():
            logger.warning("%s: %s", model, error)
            return BackOff()
        case _:
            logger.error("%s: a fault of the operator", model, exc_info=error)
            return BackOff()
