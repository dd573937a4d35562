"""Rolling out: which one Deployment is scaled next. A pure step function.

Nothing is remembered between steps. Each step follows from what is observed, so a restart of the
operator in the middle costs nothing. With

    total    the replicas wanted, over all revisions
    holding  max(asked for, alive) + terminating, over all revisions
    serving  min(asked for, ready), over all revisions
    starting asked for - serving, over the revisions that are wanted

a step may add pods while `holding` is below total + surge, since a Terminating pod still holds its
GPUs. It may take away ready pods while `serving` stays at total - unavailable or above, and pods
that are not ready while those asked for, without the starting ones, stay there: such a pod may come
back, and a new revision that never starts must not take its place. Pods that serve nobody go at
once where they stand above the count of a wanted revision, or belong to a superseded one that has
never served: a broken revision never stands in the way of the next. So do pods without a node where
more are asked for than total + surge: a surge pod that found no GPU. The last pod that serves is
taken only where downtime is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RevisionState:
    """One revision that has a Deployment, or should get one."""

    key: str
    wanted: int
    """Replicas that it should end with; 0 once it is superseded."""
    replicas: int
    """Replicas that its Deployment asks for now."""
    alive: int
    """Its pods that exist and are not Terminating, ready or not."""
    ready: int
    """Those of `alive` whose Ready condition is True."""
    terminating: int
    """Its pods that are being deleted: each holds its GPUs until it is gone."""
    served: bool = True
    """Whether a pod of it has ever been Ready."""
    unplaced: int = 0
    """Those of `alive` that have no node yet, and so no GPUs."""

    @property
    def holding(self) -> int:
        return max(self.replicas, self.alive) + self.terminating

    @property
    def serving(self) -> int:
        return min(self.replicas, self.ready)

    @property
    def surplus(self) -> int:
        return max(0, self.replicas - self.wanted)

    @property
    def idle_surplus(self) -> int:
        """Replicas above `wanted` that serve nobody."""
        return min(self.surplus, self.replicas - self.serving)

    @property
    def loose(self) -> int:
        """Replicas that hold no GPUs: without a node, or not even created."""
        return max(0, self.replicas - (self.alive - self.unplaced))

    @property
    def gone(self) -> bool:
        """Nothing of it is left: its Deployment may be deleted."""
        return self.wanted == self.holding == 0


@dataclass(frozen=True)
class Limits:
    """How far a rollout may leave the wanted number of pods. Both zero could never move."""

    surge: int
    """Pods that may exist above the total."""
    unavailable: int
    """Pods that may be missing from the total while replaced."""
    downtime: bool = True
    """Whether the last pod that serves may be among them."""

    def __post_init__(self) -> None:
        if self.surge < 0 or self.unavailable < 0 or self.surge + self.unavailable == 0:
            raise ValueError(f"{self} could never move: set one of the two above 0")


@dataclass(frozen=True)
class Scale:
    """One change: the Deployment of revision `key` should ask for `replicas`."""

    key: str
    replicas: int


def targets(
    keys: Iterable[str], current: str, total: int, sensor: str | None = None
) -> Mapping[str, int]:
    """Wanted replicas by revision: all of them for the current one, 0 for every other; but one of
    several for the `sensor`, a revision that runs beside the current one."""
    beside = 1 if sensor is not None and total > 1 else 0
    wanted = dict.fromkeys((*keys, current), 0)
    wanted[current] = total - beside
    return {**wanted, sensor: 1} if sensor is not None and beside else wanted


def next_scale(revisions: Sequence[RevisionState], limits: Limits) -> Scale | None:
    """The next change, or None while there is nothing to do or something to wait for.

    `revisions` are all that have a Deployment or are wanted, oldest first.
    """
    total = sum(revision.wanted for revision in revisions)
    floor = total - limits.unavailable
    asked = sum(revision.replicas for revision in revisions)
    serving = sum(revision.serving for revision in revisions)
    holding = sum(revision.holding for revision in revisions)
    starting = sum(r.replicas - r.serving for r in revisions if r.wanted)
    kept = floor if limits.downtime else max(floor, min(1, total))
    return (
        _drop_useless(revisions)
        or _drop_loose(revisions, asked - total - limits.surge)
        or _add(revisions, total + limits.surge - holding)
        or _drop_idle(revisions, asked - starting - floor)
        or _drop_serving(revisions, serving - kept)
    )


def _drop_useless(revisions: Sequence[RevisionState]) -> Scale | None:
    for revision in revisions:
        if revision.idle_surplus and (revision.wanted or not revision.served):
            return Scale(revision.key, revision.replicas - revision.idle_surplus)
    return None


def _drop_loose(revisions: Sequence[RevisionState], excess: int) -> Scale | None:
    for revision in revisions:
        removable = min(revision.loose, excess) if revision.wanted else 0
        if removable > 0:
            return Scale(revision.key, revision.replicas - removable)
    return None


def _add(revisions: Sequence[RevisionState], room: int) -> Scale | None:
    for revision in revisions:
        missing = min(revision.wanted - revision.replicas, room)
        if missing > 0:
            return Scale(revision.key, revision.replicas + missing)
    return None


def _drop_idle(revisions: Sequence[RevisionState], spare: int) -> Scale | None:
    for revision in revisions:
        removable = min(revision.idle_surplus, spare)
        if removable > 0:
            return Scale(revision.key, revision.replicas - removable)
    return None


def _drop_serving(revisions: Sequence[RevisionState], spare: int) -> Scale | None:
    for revision in revisions:
        removable = min(revision.surplus, spare)
        if removable > 0:
            return Scale(revision.key, revision.replicas - removable)
    return None
