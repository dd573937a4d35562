"""What is remembered of replicas from window to window: who was out of line, and what is usual."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from speculative_operator.tuning.likeness import Same, step_times
from speculative_operator.tuning.suspicion import Suspicion
from speculative_operator.tuning.window import Window

MOST_WATCHED = 8
"""Replicas of which something is remembered, the most suspect first."""

MOST_LEVELS = 12
"""Step times that are remembered, those of most steps first."""

FADING = 0.8
"""What a remembered step time keeps of its weight from window to window."""

FORGOTTEN = 24
"""Windows after which a replica is believed again that could not be compared any more."""


class Sign(StrEnum):
    """What is compared. Without drafts for its own part a replica is silent; counters that
    contradict each other are another matter."""

    ACCEPTANCE = "acceptance"
    STEP_TIME = "step time"
    COUNTERS = "counters"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True)
class Standing:
    """One replica that is or was out of line in one sign. `text` is of when it was first said;
    `unseen` counts windows in which it could not be compared."""

    uid: str
    name: str
    sign: Sign
    suspicion: Suspicion
    text: str
    unseen: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    """Replicas disagree in one sign and none is known to be the odd one."""

    sign: Sign
    suspicion: Suspicion
    text: str


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual step time, log microseconds, of K in a batch cell, over fading `steps`."""

    k: int
    cell: int | None
    value: float
    steps: float


@dataclass(frozen=True, slots=True)
class Replicas:
    """What is remembered of the replicas of one revision."""

    standings: tuple[Standing, ...] = ()
    splits: tuple[Split, ...] = ()
    levels: tuple[Usual, ...] = ()

    @property
    def odd(self) -> tuple[Standing, ...]:
        """Those said to be out of line."""
        return tuple(standing for standing in self.standings if standing.suspicion.said)

    @property
    def disagreement(self) -> str | None:
        """That they disagree, in words."""
        return next((split.text for split in self.splits if split.suspicion.said), None)


class Finding(NamedTuple):
    """One sign in one window: how many limits each compared replica is out of line by its own
    fault, what to say of it, and the same of the whole fleet where nobody's fault is known."""

    ratios: Mapping[str, float]
    texts: Mapping[str, str]
    split: float = 0.0
    split_text: str = ""


def standings_after(
    before: tuple[Standing, ...],
    findings: Mapping[Sign, Finding],
    names: Mapping[str, str],
    present: Collection[str],
) -> tuple[Standing, ...]:
    """One window later. `names` are the pods of the window, `present` all that there are, both by
    UID."""
    known = {(standing.uid, standing.sign): standing for standing in before}
    after: list[Standing] = []
    for sign, found in findings.items():
        for uid, ratio in found.ratios.items():
            old = known.pop((uid, sign), None)
            suspicion = (old.suspicion if old else Suspicion()).after(ratio)
            if suspicion == Suspicion():
                continue
            text = old.text if old and old.suspicion.said else found.texts.get(uid, "")
            after.append(Standing(uid, names[uid], sign, suspicion, text))
    after += [
        replace(standing, unseen=standing.unseen + 1)
        for standing in known.values()
        if standing.uid in present and standing.unseen < FORGOTTEN
    ]
    after.sort(key=lambda s: (-s.suspicion.said, -s.suspicion.score, s.name, s.sign))
    return tuple(after[:MOST_WATCHED])


def splits_after(before: tuple[Split, ...], findings: Mapping[Sign, Finding]) -> tuple[Split, ...]:
    """One window later."""
    known = {split.sign: split for split in before}
    after = []
    for sign, found in findings.items():
        old = known.get(sign)
        suspicion = (old.suspicion if old else Suspicion()).after(found.split)
        if suspicion == Suspicion():
            continue
        text = old.text if old and (old.suspicion.said or not found.split) else found.split_text
        after.append(Split(sign, suspicion, text))
    return tuple(after)


def levels_after(
    before: tuple[Usual, ...], sound: list[Window], splits: tuple[Split, ...]
) -> tuple[Usual, ...]:
    """The usual step times one window later; nothing is usual while replicas disagree."""
    if any(split.sign is Sign.STEP_TIME for split in splits):
        return before
    sums = {Same(at.k, at.cell): (at.value, at.steps * FADING) for at in before}
    for same, now in chain.from_iterable(step_times(each).items() for each in sound):
        value, steps = sums.get(same, (0.0, 0.0))
        total = steps + now.weight
        sums[same] = ((value * steps + now.value * now.weight) / total, total)
    levels = [Usual(at.k, at.cell, value, steps) for at, (value, steps) in sums.items()]
    levels.sort(key=lambda at: -at.steps)
    return tuple(levels[:MOST_LEVELS])
