"""Rollouts as tables of steps, played without a cluster: `old(3)` has 3 ready pods to give up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from speculative_operator.plan.rollout import (
    Limits,
    RevisionState,
    Scale,
    next_scale,
    targets,
)

IN_PLACE = Limits(surge=0, unavailable=1)
SURGE = Limits(surge=1, unavailable=0)


def old(replicas: int, ready: int | None = None, **more: Any) -> RevisionState:
    return revision("old", 0, replicas, ready, **more)


def new(wanted: int, replicas: int = 0, ready: int | None = None, **more: Any) -> RevisionState:
    return revision("new", wanted, replicas, ready, **more)


def revision(
    key: str,
    wanted: int,
    replicas: int,
    ready: int | None = None,
    *,
    alive: int | None = None,
    terminating: int = 0,
    served: bool = True,
    unplaced: int = 0,
) -> RevisionState:
    return RevisionState(
        key=key,
        wanted=wanted,
        replicas=replicas,
        alive=replicas if alive is None else alive,
        ready=replicas if ready is None else ready,
        terminating=terminating,
        served=served,
        unplaced=unplaced,
    )


def settled(state: RevisionState) -> RevisionState:
    """The revision once its pods are gone, created and ready."""
    return replace(state, alive=state.replicas, ready=state.replicas, terminating=0, served=True)


def scaled(state: RevisionState, scale: Scale) -> RevisionState:
    """The revision right after a step: pods that go are Terminating, those that come not ready."""
    if state.key != scale.key:
        return state
    gone = max(0, state.alive - scale.replicas)
    return replace(
        state,
        replicas=scale.replicas,
        alive=state.alive - gone,
        ready=min(state.ready, scale.replicas),
        terminating=state.terminating + gone,
    )


def play(fleet: Sequence[RevisionState], within: Limits) -> Iterator[tuple[str, int]]:
    """All steps of a rollout in which every pod does what it should."""
    for _ in range(200):
        scale = next_scale(fleet, within)
        if scale is None:
            return
        yield scale.key, scale.replicas
        fleet = [settled(scaled(state, scale)) for state in fleet]
    raise AssertionError("the rollout does not end")


def test_a_new_model_starts_all_at_once() -> None:
    """Nobody is served yet, so nothing is to be kept."""
    assert list(play([new(3)], IN_PLACE)) == [("new", 3)]


def test_in_place_frees_a_pods_gpus_before_its_replacement_starts() -> None:
    """A cluster without a spare GPU could not move otherwise."""
    assert list(play([old(3), new(3)], IN_PLACE)) == [
        ("old", 2),
        ("new", 1),
        ("old", 1),
        ("new", 2),
        ("old", 0),
        ("new", 3),
    ]


def test_surge_starts_one_more_pod_first() -> None:
    """So the ready pods are never fewer than wanted."""
    assert list(play([old(3), new(3)], SURGE)) == [
        ("new", 1),
        ("old", 2),
        ("new", 2),
        ("old", 1),
        ("new", 3),
        ("old", 0),
    ]


@pytest.mark.parametrize(
    ("within", "steps"),
    [(IN_PLACE, [("old", 0), ("new", 1)]), (SURGE, [("new", 1), ("old", 0)])],
    ids=["in place", "surge"],
)
def test_a_single_replica(within: Limits, steps: list[tuple[str, int]]) -> None:
    """In place costs downtime here, which is what the user chose."""
    assert list(play([old(1), new(1)], within)) == steps


def test_the_last_pod_that_serves_stays_where_downtime_is_not_allowed() -> None:
    """Also where more may be missing than there are; one that does not serve anyway may go."""
    kept = Limits(surge=0, unavailable=2, downtime=False)

    assert next_scale([old(1), new(1)], kept) is None
    assert next_scale([old(2), new(2)], kept) == Scale("old", 1)
    assert next_scale([old(1, ready=0), new(1)], kept) == Scale("old", 0)
    assert next_scale([old(1), new(0)], kept) == Scale("old", 0)


def test_a_surge_pod_without_gpus_goes_once_the_rollout_is_in_place() -> None:
    """It holds nothing; one that loads already keeps its GPUs."""
    waits, loads = new(2, 1, ready=0, unplaced=1), new(2, 1, ready=0)

    assert next_scale([old(2), waits], IN_PLACE) == Scale("new", 0)
    assert next_scale([old(2), loads], IN_PLACE) == Scale("old", 1)
    assert next_scale([old(2), new(2, 1, ready=0, alive=0)], IN_PLACE) == Scale("new", 0)
    assert next_scale([old(2), waits], SURGE) is None


def test_fewer_replicas_in_the_middle_of_a_rollout() -> None:
    """The old pods make up the difference first."""
    assert list(play([old(3), new(2, 1)], IN_PLACE)) == [("old", 0), ("new", 2)]


def test_more_replicas_in_the_middle_of_a_rollout() -> None:
    """What is added runs the new revision at once."""
    assert next(play([old(2), new(5, 1)], IN_PLACE)) == ("new", 3)


def test_scaling_to_zero_stops_all() -> None:
    """An autoscaler may put a model to sleep, also during a rollout."""
    assert list(play([old(2), new(0, 1)], IN_PLACE)) == [("old", 0), ("new", 0)]


def test_nothing_is_to_do_when_all_is_as_wanted() -> None:
    """A step that changes nothing would be a write at every look."""
    assert next_scale([old(0), new(3, 3)], IN_PLACE) is None


@pytest.mark.parametrize(
    ("fleet", "within"),
    [
        ([old(2, terminating=1), new(3)], IN_PLACE),
        ([old(2, alive=3, ready=3), new(3)], IN_PLACE),
        ([old(2), new(3, 1, ready=0)], IN_PLACE),
        ([old(3), new(3, 1, ready=0)], SURGE),
        ([old(2, terminating=1), new(3, 1)], SURGE),
        ([old(2), new(3, 1, alive=0, ready=0)], IN_PLACE),
    ],
    ids=[
        "a Terminating pod holds its GPUs",
        "a pod whose end was ordered still holds them",
        "the replacement is not ready",
        "the surge pod is not ready",
        "the surge pod's place is still held",
        "the replacement is not created yet",
    ],
)
def test_what_a_step_waits_for(fleet: list[RevisionState], within: Limits) -> None:
    """Each of these ends by itself, and the next look goes on."""
    assert next_scale(fleet, within) is None


def test_a_new_revision_that_never_starts_takes_one_pod_at_most() -> None:
    """The other old pods serve on until the user repairs the spec."""
    fleet = [old(3), new(4, 1, ready=0, served=False)]

    assert next_scale(fleet, IN_PLACE) is None


def test_a_failing_new_revision_does_not_take_a_pod_that_is_not_ready_for_a_while() -> None:
    """An old pod that restarts comes back; its replacement would not."""
    fleet = [old(3, ready=2), new(4, 1, ready=0, served=False)]

    assert next_scale(fleet, IN_PLACE) is None


def test_a_broken_revision_gives_up_its_pods_for_the_next_one() -> None:
    """It has never served, and it holds the GPUs that its repair needs."""
    fleet = [
        old(3),
        revision("broken", 0, 1, 0, served=False),
        revision("repaired", 4, 0),
    ]

    assert list(play(fleet, IN_PLACE))[:2] == [("broken", 0), ("repaired", 1)]


def test_back_to_the_old_spec_brings_the_old_pods_back() -> None:
    """The key is the old one again, so its pods are just added to."""
    fleet = [revision("old", 4, 3), revision("broken", 0, 1, 0, served=False)]

    assert list(play(fleet, IN_PLACE)) == [("broken", 0), ("old", 4)]


def test_old_pods_that_all_fail_are_replaced_one_by_one() -> None:
    """They may come back, so a new revision has to prove itself first."""
    fleet = [old(3, ready=0), new(3)]

    assert next_scale(fleet, IN_PLACE) == Scale("old", 2)
    assert next_scale([old(2, ready=0), new(3, 1, ready=0)], IN_PLACE) is None
    assert next_scale([old(2, ready=0), new(3, 1)], IN_PLACE) == Scale("old", 1)


@pytest.mark.parametrize("served", [False, True])
def test_a_model_that_is_not_ready_can_be_scaled_down(served: bool) -> None:
    """Its pods wait for GPUs perhaps; waiting for them to be ready would be for ever."""
    assert next_scale([new(2, 5, ready=0, served=served)], IN_PLACE) == Scale("new", 2)


def test_a_revision_without_pods_is_gone() -> None:
    """Then its Deployment can be deleted; not while a Terminating pod is left."""
    assert old(0).gone
    assert not old(0, terminating=1).gone
    assert not old(1).gone
    assert not new(1).gone


def test_all_replicas_are_wanted_of_the_current_revision() -> None:
    """A newer spec sets every unfinished revision to 0."""
    assert targets(["a", "b"], "c", 4) == {"a": 0, "b": 0, "c": 4}


@pytest.mark.parametrize(("surge", "unavailable"), [(0, 0), (-1, 1), (1, -1)])
def test_limits_that_never_move_are_refused(surge: int, unavailable: int) -> None:
    """A rollout under them would stall without a word."""
    with pytest.raises(ValueError, match="could never move"):
        Limits(surge=surge, unavailable=unavailable)
