"""A way back to speculation whose engines do not start: what serves goes on."""

from __future__ import annotations

import pytest

from speculative_operator.api.conditions import ConditionType, Reason
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.variant import Variant, VariantChoice
from tests.support.endings import ending
from tests.unit.controller.test_status import condition, told
from tests.unit.controller.world import IN_PLACE, World

FALLBACK = {
    "tuning": {"fallback": {"level": "Restart", "allowDowntime": True}},
    "rollout": IN_PLACE,
}
GATED = RevisionVerdict(Standing.BAD, "", Reason.CONFIGURATION_REFUSED, "The token has expired.")


def asked(world: World) -> str:
    """The key of what the spec asks for."""
    return key_of(world.model)


def plain(world: World) -> str:
    """The key of its variant without speculation."""
    return key_of(world.model, Variant.AUTOREGRESSIVE)


def away(replicas: int) -> World:
    """A model whose first revision has served and was left for the one without speculation."""
    world = World(replicas=replicas, **FALLBACK)
    world.settle()
    world.last_good = asked(world)
    world.choice = VariantChoice(asked(world), Variant.AUTOREGRESSIVE)
    world.settle()
    world.last_good = plain(world)
    assert world.replicas() == {plain(world): replicas}
    assert world.seen().standing(plain(world)) is Standing.GOOD
    return world


def promoted(world: World) -> World:
    """Its first revision has passed a trial, so it is known to be good whatever status says."""
    world.judge(asked(world), RevisionVerdict(Standing.GOOD))
    world.last_good = asked(world)
    return world


def comes_back(world: World) -> Desired:
    """The tuner wants speculation again, and each start of it ends in a fault of the target."""
    world.choice = VariantChoice(asked(world))
    for _ in range(20):
        world.make_ready({pod.name for pod in world.seen().pods_of(plain(world))})
        if world.seen().pods_of(asked(world)):
            world.end_engines(ending("unknown-flag"), starts=3)
        desired = world.act(answering={pod.incarnation for pod in world.seen().pods})
    return desired


@pytest.mark.parametrize("known", [False, True], ids=["has served", "was promoted"])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_return_that_fails_leaves_the_pods_without_speculation(
    replicas: int, *, known: bool
) -> None:
    """What keeps speculation from starting now, for example a token that has expired, is no fault
    of pods that serve; and with one replica nothing would."""
    world = away(replicas)
    desired = comes_back(promoted(world) if known else world)

    assert world.seen().standing(asked(world)) is Standing.BAD
    assert world.replicas() == {plain(world): replicas}
    assert not desired.stopped
    world.settle()
    found = told(world)
    assert condition(found, ConditionType.READY).status == "True"
    assert condition(found, ConditionType.STALLED).status == "True"
    assert "served without" in condition(found, ConditionType.STALLED).message


def test_an_engine_that_dies_after_it_has_served_is_not_given_up_for_another_form() -> None:
    """It has come back, and served: what ends it now is no matter of its start."""
    world = promoted(away(1))
    world.choice = VariantChoice(asked(world))
    world.settle()
    assert world.replicas() == {asked(world): 1}
    (pod,) = world.seen().pods
    world.lose_readiness()
    world.end_engines(ending("unknown-flag"), starts=3)
    done = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:10Z"}}
    lost = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:09:00Z"}
    world.set_pod(
        pod.name,
        status={
            "conditions": [lost],
            "initContainerStatuses": [{"name": "plugin", "state": done}],
        },
    )
    for _ in range(4):
        world.act()

    assert world.seen().standing(asked(world)) is Standing.GOOD
    assert world.replicas() == {asked(world): 1}


def test_on_a_failed_return_no_serving_pod_ever_goes() -> None:
    """Not even for one pass: with several replicas most of them serve all the time."""
    world = away(3)
    world.choice = VariantChoice(asked(world))
    for _ in range(20):
        if world.seen().pods_of(asked(world)):
            world.end_engines(ending("unknown-flag"), starts=3)
        world.act(answering={pod.incarnation for pod in world.seen().pods})
        world.make_ready({pod.name for pod in world.seen().pods_of(plain(world))})
        assert sum(pod.routed for pod in world.seen().pods) >= 2


def test_a_bad_revision_that_serves_after_all_is_not_taken_away() -> None:
    """Its engine came up at one more start, and nothing else serves."""
    world = World(replicas=2, tuning={"fallback": {"onStartFailure": "Fail"}})
    world.settle()
    world.judge(asked(world), GATED)
    world.act()

    assert world.replicas() == {asked(world): 2}


def test_of_a_bad_revision_only_what_serves_is_kept() -> None:
    """No more engines are started that may not come."""
    world = World(replicas=2, tuning={"fallback": {"onStartFailure": "Fail"}})
    world.settle()
    one, other = world.seen().pods
    world.set_pod(other.name, status={"conditions": [{"type": "Ready", "status": "False"}]})
    world.judge(asked(world), GATED)
    for _ in range(4):
        world.act()

    assert world.replicas() == {asked(world): 1}
    assert one.routed
