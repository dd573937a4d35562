"""Rollouts as properties: a cluster that does everything late and in any order keeps the limits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from speculative_operator.plan.rollout import Limits, RevisionState, Scale, next_scale

LIMITS = (
    Limits(surge=0, unavailable=1),
    Limits(surge=1, unavailable=0),
    Limits(surge=0, unavailable=3),
)


def running(key: str, replicas: int) -> RevisionState:
    """A revision that is as it should be."""
    return RevisionState(key, replicas, replicas, alive=replicas, ready=replicas, terminating=0)


def superseded(key: str, replicas: int) -> RevisionState:
    return replace(running(key, replicas), wanted=0)


def unstarted(key: str, wanted: int) -> RevisionState:
    return RevisionState(key, wanted, 0, alive=0, ready=0, terminating=0, served=False)


@dataclass
class Fleet:
    """Revisions on a cluster that does things late and in any order, and has `broken` revisions."""

    revisions: list[RevisionState]
    chance: random.Random
    broken: frozenset[str] = frozenset()

    def apply(self, scale: Scale) -> None:
        self.revisions = [
            replace(state, replicas=scale.replicas) if state.key == scale.key else state
            for state in self.revisions
        ]

    def something_happens(self) -> bool:
        """One pod is created, becomes ready, is ordered to end, or is gone. False at rest."""
        possible = [
            (number, change)
            for number, state in enumerate(self.revisions)
            for change in self._changes(state)
        ]
        if not possible:
            return False
        number, change = self.chance.choice(possible)
        self.revisions[number] = change(self.revisions[number])
        return True

    def _changes(self, state: RevisionState) -> Iterator[Callable[[RevisionState], RevisionState]]:
        if state.alive < state.replicas:
            yield lambda s: replace(s, alive=s.alive + 1)
        if state.alive > state.replicas:
            yield _end_one
        if state.ready < state.alive and state.key not in self.broken:
            yield lambda s: replace(s, ready=s.ready + 1, served=True)
        if state.terminating:
            yield lambda s: replace(s, terminating=s.terminating - 1)

    @property
    def existing(self) -> int:
        return sum(state.alive + state.terminating for state in self.revisions)

    @property
    def ready(self) -> int:
        return sum(state.ready for state in self.revisions)


def _end_one(state: RevisionState) -> RevisionState:
    """As a ReplicaSet picks: what is not ready goes first."""
    alive = state.alive - 1
    return replace(
        state, alive=alive, ready=min(state.ready, alive), terminating=state.terminating + 1
    )


@pytest.mark.parametrize("within", LIMITS)
@pytest.mark.parametrize("seed", range(20))
def test_a_rollout_on_a_slow_cluster_keeps_its_limits_and_ends(seed: int, within: Limits) -> None:
    """Whatever happens in which order: GPUs are never exceeded, and service never falls below."""
    chance = random.Random(seed)
    total = chance.randint(1, 6)
    fleet = Fleet([superseded("old", total), unstarted("new", total)], chance)

    for _ in range(60 * total):
        scale = next_scale(fleet.revisions, within)
        if scale is not None and chance.random() < 0.5:
            fleet.apply(scale)
        elif not fleet.something_happens() and scale is None:
            break
        assert fleet.existing <= total + within.surge
        assert fleet.ready >= total - within.unavailable

    assert fleet.revisions == [running("old", 0), running("new", total)]


@pytest.mark.parametrize("within", LIMITS)
@pytest.mark.parametrize("seed", range(20))
def test_a_broken_revision_and_its_repair_on_a_slow_cluster(seed: int, within: Limits) -> None:
    """The spec changes twice in the middle; old pods go one at a time and only for ready ones."""
    chance = random.Random(seed)
    total = chance.randint(1, 6)
    fleet = Fleet(
        [superseded("old", total), unstarted("broken", total)], chance, frozenset({"broken"})
    )

    for _ in range(20 * total):
        scale = next_scale(fleet.revisions, within)
        if scale is not None and chance.random() < 0.5:
            fleet.apply(scale)
        else:
            fleet.something_happens()
        assert fleet.ready >= total - within.unavailable

    fleet.revisions[1] = replace(fleet.revisions[1], wanted=0)
    fleet.revisions.append(unstarted("repaired", total))
    for _ in range(60 * total):
        scale = next_scale(fleet.revisions, within)
        if scale is not None:
            fleet.apply(scale)
        elif not fleet.something_happens():
            break
        assert fleet.existing <= total + within.surge
        assert fleet.ready >= total - within.unavailable

    assert [state.gone for state in fleet.revisions] == [True, True, False]
    assert fleet.revisions[2] == running("repaired", total)
