"""What a pass knows besides the cluster's objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from speculative_operator.controller.trials.checks import Findings
from speculative_operator.plan.surge import Counted
from speculative_operator.tuning.variant import VariantChoice


@dataclass(frozen=True)
class Told:
    """Gathered by the one who runs the pass.

    now         Unix time
    last_good   the key that status calls so
    choice      the variant that the tuner wants; None before its first word
    answering   the incarnations of pods whose engines list the served names
    findings    what was found out about the revision on trial
    hung        engines that hang, by pod UID, in words
    replace     the UIDs of pods that are to be replaced
    counted     whether the GPUs of one pod more are free, where that was looked at
    """

    now: float
    last_good: str | None = None
    choice: VariantChoice | None = None
    answering: Collection[str] = ()
    findings: Findings | None = None
    hung: Mapping[str, str] = field(default_factory=dict)
    replace: Collection[str] = ()
    counted: Counted | None = None
