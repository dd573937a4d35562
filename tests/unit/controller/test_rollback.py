"""A revision that was found bad: the last good one runs, and nothing is tried twice."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionType, EventReason, Reason
from speculative_operator.api.names import ANNOTATION_REFRESH
from speculative_operator.controller.said.transitions import notices, promotions
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.variant import Variant, VariantChoice
from tests.unit.controller.test_status import condition, told
from tests.unit.controller.world import World

LONGER: dict[str, Any] = {"model": {"maxModelLen": 4096}}
EVEN_LONGER: dict[str, Any] = {"model": {"maxModelLen": 8192}}
BAD = RevisionVerdict(Standing.BAD, "", Reason.CONTAINER_FAILED, "Pod a: exit code 1.")


def key(world: World) -> str:
    """The key that the spec asks for."""
    return key_of(world.model)


def rejected(replicas: int = 2) -> tuple[World, str]:
    """A model whose second revision was found bad while its first pod was started, and the key of
    its first one."""
    world = World(replicas=replicas)
    world.settle()
    good = world.last_good = key(world)
    world.edit(replicas=replicas, **LONGER)
    for _ in range(4):
        world.act()
    assert world.seen().pods_of(key(world))
    world.judge(key(world), BAD)
    return world, good


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_the_last_good_revision_comes_back(replicas: int) -> None:
    """Also where it had to go first, since there was one pod and no GPU more."""
    world, good = rejected(replicas)
    world.settle()

    assert world.replicas() == {good: replicas}
    assert all(pod.routed for pod in world.seen().pods)


def test_going_back_is_no_trial() -> None:
    """Else a rollback could be rolled back."""
    world, good = rejected(1)
    world.settle()

    assert world.seen().standing(good) is None


def test_a_bad_revision_is_not_tried_again() -> None:
    """Nor by an operator that knows nothing but what stands in the cluster; nor after another spec
    was tried in between."""
    world, good = rejected()
    world.settle()
    bad = key(world)
    world.edit(replicas=2, **EVEN_LONGER)
    world.settle()
    other = world.last_good = key(world)
    assert world.replicas() == {other: 2}

    world.edit(replicas=2, **LONGER)
    assert key(world) == bad
    world.settle()

    assert world.replicas() == {other: 2}
    assert good not in world.replicas()


def test_the_annotation_asks_for_another_try() -> None:
    """It is in the key, so it makes a revision of which nothing is known."""
    world, _ = rejected()
    world.settle()
    metadata = world.model.metadata.model_copy(
        update={"annotations": {ANNOTATION_REFRESH: "1"}, "generation": 9}
    )
    world.model = world.model.model_copy(update={"metadata": metadata})
    world.settle()

    assert world.replicas() == {key(world): 2}


def test_a_newer_spec_supersedes_a_rejected_one_at_once() -> None:
    """While it is being rolled back: straight to the newest."""
    world, _ = rejected()
    world.act()
    world.edit(replicas=2, **EVEN_LONGER)
    world.settle()

    assert world.replicas() == {key(world): 2}


def test_the_only_revision_stays_though_it_is_bad() -> None:
    """There is nothing to go back to; what runs is still what the spec asks for."""
    world = World(replicas=1)
    world.act()
    world.judge(key(world), BAD)
    desired = world.act()

    assert desired.current is not None
    assert desired.current.key == key(world)
    assert condition(told(world), ConditionType.STALLED).reason == "ContainerFailed"


def test_status_says_what_was_rejected_and_what_serves() -> None:
    """Ready tells of what serves; Stalled asks for a decision of the user's."""
    world, good = rejected()
    world.settle()
    now = told(world)

    assert condition(now, ConditionType.READY).status == "True"
    assert (now.revisions.current, now.revisions.last_good) == (good, good)
    assert now.revisions.trial is None
    for kind, status in ((ConditionType.PROGRESSING, "False"), (ConditionType.STALLED, "True")):
        said = condition(now, kind)
        assert (said.status, said.reason) == (status, "ContainerFailed")
        assert "Pod a: exit code 1." in said.message
        assert good in said.message


def test_a_rollback_is_told_once() -> None:
    """And nothing else: going back is no new revision."""
    world = World(replicas=2)
    world.settle()
    before = told(world)
    world.edit(replicas=2, **LONGER)
    for _ in range(4):
        world.act()
    trial = told(world, before=before)
    world.judge(key(world), BAD)
    after = told(world, before=trial)
    world.settle()
    settled = told(world, before=after)

    assert [notice.reason for notice in notices(trial, after)] == [EventReason.ROLLED_BACK]
    assert list(notices(after, settled)) == []


def test_a_revision_on_trial_is_told_and_promoted_once() -> None:
    """Its key is `trial` until it has passed."""
    world = World(replicas=2)
    world.settle()
    before = told(world)
    world.edit(replicas=2, **LONGER)
    for _ in range(4):
        world.act()
    trial = told(world, before=before)
    assert trial.revisions.trial == trial.revisions.current == key(world)
    assert trial.revisions.last_good == before.revisions.current

    world.make_ready()
    ((promoted, verdict),) = world.act(
        answering={pod.incarnation for pod in world.seen().pods}
    ).found
    (notice,) = promotions([(promoted, verdict)])

    assert promoted == key(world)
    assert notice.reason is EventReason.PROMOTED
    assert verdict.message in notice.message


def test_engines_without_speculation_that_were_found_bad_are_not_started_again() -> None:
    """The tuner still wants them; the ones that speculate run on."""
    world = World(replicas=2, tuning={"fallback": {"level": "Restart"}})
    world.settle()
    world.choice = VariantChoice(key(world), Variant.AUTOREGRESSIVE)
    for _ in range(4):
        world.act()
    plain = key_of(world.model, Variant.AUTOREGRESSIVE)
    world.judge(plain, BAD)
    world.settle()

    assert world.replicas() == {key(world): 2}
    assert ConditionType.STALLED not in {c.type for c in told(world).conditions}
