"""Which replicas' evidence may be believed: one out of line is told, and its evidence kept out.

Replicas of one revision do the same under the same traffic, so most of them show what is normal.
Where they fall into halves, as two that differ always do, what was known of them before tells: the
odd one has departed from it. Where that tells nothing either, nobody is guessed to be odd: that
they disagree is told, and all are believed, since one schedule has to serve them all. What was
learned since they disagree is no measure for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from speculative_operator.api.conditions import Reason
from speculative_operator.tuning import likeness, replica_texts
from speculative_operator.tuning.acceptance import Acceptance
from speculative_operator.tuning.comparison import Comparison
from speculative_operator.tuning.faults import broken, weak
from speculative_operator.tuning.likeness import Distance, Measure, Measures, Same
from speculative_operator.tuning.standings import (
    Finding,
    Replicas,
    Sign,
    levels_after,
    splits_after,
    standings_after,
)
from speculative_operator.tuning.suspicion import FAR
from speculative_operator.tuning.window import Window

AGE_SECONDS = 3600.0
"""A replica that started so much later than all others and accepts more is fresh, not odd."""


@dataclass(frozen=True, slots=True)
class Part:
    """One replica's share of a window; `started` is its engine's start in Unix time."""

    name: str
    started: float
    window: Window


class Judged(NamedTuple):
    """`kept_out` are the replicas, by UID, whose part of this window teaches nothing."""

    replicas: Replicas
    kept_out: frozenset[str]


def judged(
    parts: Mapping[str, Part],
    replicas: Replicas,
    acceptance: Acceptance,
    *,
    present: Collection[str],
    method: str,
) -> Judged:
    """Compares the parts of one window, by pod UID.

    `acceptance` is what the replicas have shown together before, `present` are the pods there are,
    those without traffic too. A replica alone is not judged.
    """
    if len(present) < 2:
        return Judged(Replicas(levels=replicas.levels), frozenset())
    said = {sign: frozenset(s.uid for s in replicas.odd if s.sign is sign) for sign in Sign}
    counters, silence = _broken(parts, method)
    broken_by = {uid: max(counters.ratios[uid], silence.ratios[uid]) for uid in parts}
    whole = {uid: part for uid, part in parts.items() if not broken_by[uid]}
    usual = _usual(replicas, acceptance)
    findings = {
        Sign.COUNTERS: counters,
        Sign.SILENCE: silence,
        Sign.ACCEPTANCE: _acceptance(whole, said[Sign.ACCEPTANCE], usual[Sign.ACCEPTANCE], method),
        Sign.STEP_TIME: _step_times(whole, said[Sign.STEP_TIME], usual[Sign.STEP_TIME]),
    }
    names = {uid: part.name for uid, part in parts.items()}
    standings = standings_after(replicas.standings, findings, names, present)
    splits = splits_after(replicas.splits, findings)
    out = frozenset(s.uid for s in standings if s.suspicion.said)
    now = {uid for found in findings.values() for uid, r in found.ratios.items() if r >= 1.0}
    sound = [part.window for uid, part in parts.items() if uid not in out | now]
    after = Replicas(standings, splits, levels_after(replicas.levels, sound, splits))
    return Judged(after, (out | now) & parts.keys())


def _usual(replicas: Replicas, acceptance: Acceptance) -> Mapping[Sign, Measures]:
    """What replicas have shown before, but for what they disagree in."""
    times = {
        Same(at.k, at.cell): Measure(at.value, likeness.OTHER_MACHINE**2, at.steps)
        for at in replicas.levels
    }
    usual = {Sign.ACCEPTANCE: likeness.known_acceptance(acceptance), Sign.STEP_TIME: times}
    return usual | {split.sign: {} for split in replicas.splits}


def _broken(parts: Mapping[str, Part], method: str) -> tuple[Finding, Finding]:
    """Counters that only some replicas have broken, and those of replicas that are silent; where
    all are broken, it is no one's own."""
    faults = {uid: broken(part.window, method) for uid, part in parts.items()}
    texts = {
        uid: replica_texts.of_counters(parts[uid].name, fault.message)
        for uid, fault in faults.items()
        if fault is not None
    }
    silent = {uid for uid, fault in faults.items() if fault and fault.reason is Reason.NO_DRAFTS}
    odd = texts.keys() if len(texts) < len(parts) else set()
    contradictory, quiet = (
        Finding({uid: FAR if uid in odd & of else 0.0 for uid in parts}, texts)
        for of in (texts.keys() - silent, silent)
    )
    return contradictory, quiet


def _acceptance(
    parts: Mapping[str, Part], said: frozenset[str], usual: Measures, method: str
) -> Finding:
    comparison = Comparison(
        measures={uid: likeness.acceptance(part.window) for uid, part in parts.items()},
        said=said,
        usual=usual,
        least=likeness.LEAST_ACCEPTANCE,
        faulty=frozenset(uid for uid, part in parts.items() if weak(part.window, method)),
        fresh=frozenset(uid for uid in parts if _fresh(uid, parts)),
    )
    return _found(comparison, Sign.ACCEPTANCE, parts, replica_texts.of_acceptance)


def _step_times(parts: Mapping[str, Part], said: frozenset[str], usual: Measures) -> Finding:
    comparison = Comparison(
        measures={uid: likeness.step_times(part.window) for uid, part in parts.items()},
        said=said,
        usual=usual,
        least=likeness.LEAST_TIME,
    )
    return _found(comparison, Sign.STEP_TIME, parts, replica_texts.of_step_time)


def _fresh(uid: str, parts: Mapping[str, Part]) -> bool:
    """Whether a replica started long after all others."""
    others = [part.started for other, part in parts.items() if other != uid]
    return all(parts[uid].started - started >= AGE_SECONDS for started in others)


def _found(
    comparison: Comparison,
    sign: Sign,
    parts: Mapping[str, Part],
    text: Callable[[str, Distance], str],
) -> Finding:
    distances = comparison.distances()
    odd = comparison.odd(distances)
    ratios = {uid: at.ratio if uid in odd else 0.0 for uid, at in distances.items()}
    texts = {uid: text(parts[uid].name, distances[uid]) for uid in odd}
    unclear = [
        uid
        for uid, at in distances.items()
        if at.ratio >= 1.0 and not odd and uid not in comparison.fresh
    ]
    if not unclear or comparison.fresh:
        return Finding(ratios, texts)
    names = sorted(parts[uid].name for uid in unclear)
    worst = max(distances[uid].ratio for uid in unclear)
    return Finding(ratios, texts, worst, replica_texts.of_split(names, sign))
