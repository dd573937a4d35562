"""A window of evidence from what each replica showed: what cannot be believed is left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from speculative_operator.api.conditions import EventReason, Reason
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.replicas import Part, judged
from speculative_operator.tuning.standings import Replicas
from speculative_operator.tuning.state import State
from speculative_operator.tuning.verdict import Notice
from speculative_operator.tuning.window import LEAST_DRAFTS, NoEvidence, Window, merged


@dataclass(frozen=True, slots=True)
class Trusted:
    """What may be learned from, and the state that remembers who was left out."""

    window: Window | NoEvidence
    state: State
    notices: tuple[Notice, ...] = ()


def trusted(
    parts: Mapping[str, Part],
    state: State,
    policy: Policy,
    *,
    present: Collection[str],
    now: float,
) -> Trusted:
    """The window of all replicas that are in line. `parts` and `present` are by pod UID, see
    `replicas.judged`; `now` is Unix time."""
    replicas, kept_out = judged(
        parts, state.replicas, state.acceptance, present=present, method=policy.method
    )
    sound = [part for uid, part in parts.items() if uid not in kept_out]
    aged = ((now - part.started, part.window) for part in sound if part.started)
    aging = state.aging.after(aged)
    notices = _news(state.replicas, replicas)
    after = replace(state, replicas=replicas, aging=aging)
    return Trusted(_window(sound, len(parts)), after, notices)


def _window(sound: Collection[Part], of: int) -> Window | NoEvidence:
    window = merged(part.window for part in sound)
    if window.weight >= LEAST_DRAFTS:
        return window
    if len(sound) < of:
        return NoEvidence(Reason.NOT_ENOUGH_DRAFTS, "too few drafts of replicas that are in line")
    return NoEvidence(Reason.NOT_ENOUGH_DRAFTS, "too few drafts")


def _news(before: Replicas, after: Replicas) -> tuple[Notice, ...]:
    """Replicas that have fallen out of line, each once, whatever else it shows; and those that are
    back."""
    known = {standing.uid for standing in before.odd}
    still = {standing.uid: standing for standing in reversed(after.odd)}
    fallen = tuple(
        Notice(EventReason.REPLICA_OUT_OF_LINE, standing.text, warning=True)
        for uid, standing in still.items()
        if uid not in known
    )
    names = sorted({standing.name for standing in before.odd if standing.uid not in still})
    return fallen + tuple(
        Notice(EventReason.REPLICA_IN_LINE, f"Pod {name} is in line with the others again.")
        for name in names
    )
