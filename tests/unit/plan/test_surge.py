"""One pod more first, or in place: what decides, and what holds whatever the cluster does."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from speculative_operator.api.exposure import RolloutSpec, RolloutStrategy
from speculative_operator.plan.rollout import Limits, RevisionState, next_scale
from speculative_operator.plan.surge import (
    ONE_MORE,
    Chance,
    Wait,
    Way,
    in_place,
    rolling,
    surges_next,
    way,
)

TIMEOUT = 120
PLACE = Limits(surge=0, unavailable=1, downtime=False)
FULL = "no node has 8 free"
LATE, EARLY = Wait(TIMEOUT, "Insufficient amd.com/gpu"), Wait(20.0, "Insufficient amd.com/gpu")


def states(total: int, started: int = 0, *, serving: int | None = None) -> tuple[Any, ...]:
    """An old revision that serves with all its pods, and the new one of which some were started."""
    ready = total if serving is None else serving
    old = RevisionState("old", 0, total, alive=total, ready=ready, terminating=0)
    new = RevisionState(
        "new", total, started, alive=started, ready=0, terminating=0, served=False, unplaced=started
    )
    return old, new


def auto(fleet: tuple[RevisionState, ...], *, downtime: bool = False, **chance: Any) -> Way:
    return way(RolloutSpec(), fleet, Chance(**chance), downtime=downtime)


def test_auto_starts_one_more_first() -> None:
    """Nothing is missing then, if its GPUs are free."""
    assert auto(states(2)) == Way(ONE_MORE)


def test_auto_waits_for_the_timeout_and_then_goes_in_place() -> None:
    """The reason is to be recorded, so that a new operator does not try again."""
    assert auto(states(2, 1), wait=EARLY) == Way(ONE_MORE, look_in=TIMEOUT - 20.0)
    assert auto(states(2, 1), wait=LATE) == Way(PLACE, LATE.words, give_up=True)
    assert auto(states(2, 1), in_place=LATE.words) == Way(PLACE, LATE.words)


def test_auto_saves_an_attempt_that_cannot_or_must_not_succeed() -> None:
    """Where no GPU is free as counted, or where the pod might evict somebody else's."""
    assert auto(states(2), full=FULL) == Way(PLACE, FULL, give_up=True)
    assert auto(states(2), preempts=FULL) == Way(PLACE, FULL, give_up=True)


def test_one_replica_waits_for_a_gpu_unless_downtime_is_allowed() -> None:
    """A change must not make an outage; the surge pod stays queued, as a GPU may come free."""
    allowed = replace(PLACE, downtime=True)

    assert auto(states(1, 1), wait=EARLY).look_in == TIMEOUT - 20.0
    assert auto(states(1, 1), wait=LATE) == Way(ONE_MORE, blocked=True)
    assert auto(states(1, 1), full=FULL) == Way(ONE_MORE)
    assert auto(states(1, 1), wait=LATE, downtime=True) == Way(allowed, LATE.words, give_up=True)


def test_one_replica_whose_surge_pod_might_evict_others_starts_none() -> None:
    """It waits for the user instead."""
    assert auto(states(1), preempts="it evicts") == Way(PLACE, blocked=True)


def test_one_replica_that_does_not_serve_is_replaced_in_place() -> None:
    """There is no service to lose, and its GPUs are what the repair needs."""
    found = auto(states(1, 1, serving=0), wait=LATE)

    assert (found.give_up, found.blocked) == (True, False)


def test_in_place_with_one_replica_obeys_and_says_what_it_does() -> None:
    """The strategy alone is no leave to stop serving."""
    spec = RolloutSpec(strategy=RolloutStrategy.IN_PLACE)

    assert way(spec, states(1), Chance(), downtime=False).blocked
    assert way(spec, states(1), Chance(), downtime=True).give_up
    assert way(spec, states(2), Chance(), downtime=False) == Way(PLACE)


def test_surge_waits_as_long_as_it_takes() -> None:
    """That is what the user has asked for."""
    spec = RolloutSpec(strategy=RolloutStrategy.SURGE)

    assert way(spec, states(2, 1), Chance(wait=LATE), downtime=True) == Way(ONE_MORE)


def test_more_may_be_missing_only_once_the_new_revision_has_served() -> None:
    """An unproven one takes one pod, however many may be unavailable."""
    spec = RolloutSpec(max_unavailable=3)

    assert in_place(spec, proven=False, downtime=True).unavailable == 1
    assert in_place(spec, proven=True, downtime=True).unavailable == 3


@dataclass
class Cluster:
    """A few GPUs, two revisions that want them, a neighbour that takes and frees some, and a clock.

    `quota` is how many pods the namespace may have.
    """

    chance: random.Random
    gpus: int
    quota: int
    fleet: list[RevisionState]
    recorded: str | None = None
    waited: float = 0.0
    neighbour: int = 0

    @property
    def held(self) -> int:
        """GPUs in use; Terminating pods hold theirs."""
        pods = sum(s.alive - s.unplaced + s.terminating for s in self.fleet)
        return pods + self.neighbour

    @property
    def asked(self) -> int:
        return sum(state.replicas for state in self.fleet)

    def happens(self, *, calm: bool) -> None:
        """One thing, or some time."""
        number = self.chance.randrange(len(self.fleet))
        state = self.fleet[number]
        match self.chance.randrange(7):
            case 0 if state.alive < state.replicas and self._pods() < self.quota:
                state = replace(state, alive=state.alive + 1, unplaced=state.unplaced + 1)
            case 1 if state.alive > state.replicas:
                state = _ended(state)
            case 2 if state.unplaced and self.held < self.gpus:
                state = replace(state, unplaced=state.unplaced - 1)
            case 3 if state.ready < state.alive - state.unplaced:
                state = replace(state, ready=state.ready + 1, served=True)
            case 4 if state.terminating:
                state = replace(state, terminating=state.terminating - 1)
            case 5 if not calm:
                most = min(1, self.gpus - self.held + self.neighbour)
                self.neighbour = self.chance.randint(0, most)
            case 6:
                total = sum(s.wanted for s in self.fleet)
                surging = self.asked > total and self.fleet[-1].loose
                self.waited = self.waited + 40.0 if surging else 0.0
        self.fleet[number] = state

    def _pods(self) -> int:
        return sum(state.alive + state.terminating for state in self.fleet)

    def step(self, spec: RolloutSpec) -> Way:
        """What the operator does in one pass, from what it sees."""
        fleet = tuple(self.fleet)
        total = sum(state.wanted for state in fleet)
        surging = self.asked > total and fleet[-1].loose
        wait = Wait(self.waited, "no GPU") if surging else None
        found = way(spec, fleet, Chance(self.recorded, wait), downtime=spec.allow_downtime)
        if found.give_up:
            self.recorded = found.in_place
            return found
        if self.recorded is not None and not rolling(fleet):
            self.recorded = None
        scale = next_scale(fleet, found.limits)
        if scale is not None:
            self.fleet = [
                replace(state, replicas=scale.replicas) if state.key == scale.key else state
                for state in self.fleet
            ]
        return found


def _ended(state: RevisionState) -> RevisionState:
    """As a ReplicaSet picks: without a node first, and those hold nothing; then not ready."""
    if state.unplaced:
        return replace(state, alive=state.alive - 1, unplaced=state.unplaced - 1)
    alive = state.alive - 1
    ready = min(state.ready, alive)
    return replace(state, alive=alive, ready=ready, terminating=state.terminating + 1)


@pytest.mark.parametrize("strategy", [RolloutStrategy.AUTO, RolloutStrategy.IN_PLACE])
@pytest.mark.parametrize("seed", range(60))
def test_a_scarce_cluster_never_loses_more_than_allowed_and_never_deadlocks(
    seed: int, strategy: RolloutStrategy
) -> None:
    """Whatever happens in which order, with a GPU to spare or not, under a quota or not."""
    chance = random.Random(f"{seed} {strategy}")
    total = chance.randint(1, 4)
    spec = RolloutSpec(
        strategy=strategy,
        max_unavailable=chance.randint(1, 2),
        allow_downtime=chance.random() < 0.5 or total == 1,
    )
    gpus = total + chance.randint(0, 1)
    quota = chance.choice([total, total + 1, 99])
    cluster = Cluster(chance, gpus, quota, list(states(total)))
    least = 0 if spec.allow_downtime else 1

    for turn in range(4000):
        calm = turn > 300
        if calm:
            cluster.neighbour = 0
        if chance.random() < 0.5:
            cluster.step(spec)
        else:
            cluster.happens(calm=calm)
        serving = sum(state.ready for state in cluster.fleet)
        assert cluster.held <= gpus
        assert serving >= max(total - spec.max_unavailable, least)
        if calm and not rolling(tuple(cluster.fleet)) and serving == total:
            break

    assert cluster.fleet[0].replicas == 0
    assert cluster.fleet[1].ready == total


@pytest.mark.parametrize("seed", range(20))
def test_the_last_pod_stays_while_downtime_is_not_allowed(seed: int) -> None:
    """With one replica and no spare GPU the rollout waits, and says so; a free GPU ends that."""
    chance = random.Random(seed)
    cluster = Cluster(chance, 1, 99, list(states(1)))

    for _ in range(400):
        cluster.step(RolloutSpec())
        cluster.happens(calm=True)
        assert sum(state.ready for state in cluster.fleet) == 1

    assert cluster.step(RolloutSpec()).blocked
    cluster.gpus = 2
    for _ in range(2000):
        cluster.step(RolloutSpec())
        cluster.happens(calm=True)
        assert sum(state.ready for state in cluster.fleet) >= 1
    assert [state.replicas for state in cluster.fleet] == [0, 1]


def test_counting_matters_only_before_one_more_is_started() -> None:
    """Not while a Terminating pod still holds what it leaves."""
    old, new = states(2)
    started = replace(new, replicas=1, alive=1)

    assert surges_next((old, new))
    assert not surges_next((old, started))
    assert not surges_next((replace(old, replicas=1, alive=1, terminating=1), started))
