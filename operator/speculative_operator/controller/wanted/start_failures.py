"""Engines that end before they serve: what is told of it, and whether they are started again. Pure.

The kubelet starts an ended engine again, with a back-off, and its pod holds the GPUs meanwhile.
Where every start ends the same that is a waste: after as many starts as the cause of the last end
allows, a revision that has never served is found bad, its pods go, and it waits for another spec;
so is one that has, where it fails to come back from another form of the same spec.
A pod's status counts its starts and tells the last end alone, so others may have ended otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from speculative_operator.controller.seen.cause_classes import UNHEALTHY, Cause, Part
from speculative_operator.controller.seen.causes import Speculation, cause_of
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod, Trouble, short
from speculative_operator.controller.seen.revision_verdict import (
    SPECULATION,
    RevisionVerdict,
    Standing,
)
from speculative_operator.controller.wanted.stand_ins import stand_ins_for
from speculative_operator.plan.overlay import ENGINE
from speculative_operator.resources.rebuilt_revision import speculative_config


@dataclass(frozen=True)
class StartFailure:
    """How the last start of a pod's engine ended, and how many starts have ended in all."""

    pod: str
    cause: Cause
    words: str
    starts: int

    @property
    def final(self) -> bool:
        """Whether there is no point in another start."""
        return self.cause.starts is not None and self.starts >= self.cause.starts

    @property
    def leave_out(self) -> str | None:
        """What to start without: an option by vLLM's name, or all of speculation; None where that
        would not help."""
        if self.cause.option is not None:
            return self.cause.option
        return None if self.cause.part is Part.TARGET else SPECULATION

    @property
    def message(self) -> str:
        """What to do, and the engine's own words."""
        return short(f"{self.cause.advice} Pod {self.pod} {self.words}")


def failure_of(pod: Pod, seen: Observed) -> StartFailure | None:
    """How a pod's engine ended; None for one that never did, or is ready again."""
    if pod.ending is None:
        return None
    cause = cause_of(pod.ending, _speculation(pod.revision, seen))
    if pod.unhealthy is not None:
        cause = replace(UNHEALTHY, advice=f"Unhealthy on node {pod.node}: {pod.unhealthy}.")
    return StartFailure(pod.name, cause, pod.ending.words, pod.starts)


def to_move(seen: Observed) -> Iterator[Pod]:
    """Pods whose engine has ended on a device that is unhealthy: each start would be on it again,
    while another pod is given a healthy one."""
    for pod in seen.pods:
        if pod.alive and pod.placed and pod.ending is not None and pod.unhealthy is not None:
            yield pod


def not_to_start(
    seen: Observed, good: Collection[str], now: str
) -> Iterator[tuple[str, RevisionVerdict]]:
    """Verdicts on revisions that may be given up, and of which no start can succeed."""
    for key in seen.by_age():
        if seen.standing(key) is Standing.BAD or not _may_be_given_up(key, seen, good):
            continue
        failures = (failure_of(pod, seen) for pod in seen.pods_of(key) if not pod.terminating)
        final = next((f for f in failures if f is not None and f.final), None)
        if final is not None:
            yield (
                key,
                RevisionVerdict(
                    Standing.BAD, now, final.cause.reason, final.message, final.leave_out
                ),
            )


def _may_be_given_up(key: str, seen: Observed, good: Collection[str]) -> bool:
    """Not once it has served: what ends its engines now is no matter of their start. But where it
    comes back from another form of its spec that is good, and no pod of it has come, that one
    goes on."""
    if key not in good and seen.standing(key) is not Standing.GOOD:
        return True
    facts = seen.revisions[key].recorded.facts
    asked = facts.stands_in_for or facts.reduced_from or key
    others = {asked, *stand_ins_for(asked, seen)} - {key}
    pods = [pod for pod in seen.pods_of(key) if not pod.terminating]
    return any(k in good for k in others) and not any(pod.ready or pod.was_ready for pod in pods)


def trouble_of(pod: Pod, seen: Observed) -> Trouble | None:
    """Why a pod is not ready, with what to do about it."""
    failure = failure_of(pod, seen)
    if failure is not None:
        return Trouble(failure.cause.reason, failure.message)
    if pod.trouble is None:
        return None
    return Trouble(pod.trouble.reason, f"Pod {pod.name}: {pod.trouble.message}")


def _speculation(key: str, seen: Observed) -> Speculation:
    """As the revision's engines were started."""
    if key not in seen.revisions:
        return Speculation()
    containers = seen.revisions[key].recorded.template["spec"]["containers"]
    arguments = next((c.get("args", ()) for c in containers if c["name"] == ENGINE), ())
    return Speculation(speculative_config(arguments))
