"""Engines at fault while they run: told, and replaced where the user allows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionType, EventReason, Reason
from speculative_operator.api.names import LABEL_SERVING
from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.said.status import PassFindings, status
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.controller.wanted.tuned_model import tuned_model
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.memory import from_data
from tests.support.tuner_world import World, a_model, pass_seconds
from tests.unit.controller.test_probation import LONGER, passes
from tests.unit.controller.test_status import condition, told
from tests.unit.controller.world import World as Cluster


@pytest.fixture
def world() -> World:
    """Two replicas under load."""
    made = World()
    made.models = [replace(a_model(made, replicas=2), replaces=True)]
    policy = made.models[0].policy
    limits = replace(policy.restart, replicas=2)
    made.models = [replace(made.models[0], policy=replace(policy, restart=limits))]
    return made


async def hang(world: World, tuner: Tuner, uid: str) -> None:
    """After some work one engine stops."""
    await pass_seconds(world, tuner, 30)
    world.engines[uid].hangs = True
    await pass_seconds(world, tuner, 80)


async def test_a_hang_is_told_and_its_pod_is_to_go_once_that_is_saved(world: World) -> None:
    """Or a new operator would take another one at once."""
    tuner = Tuner(world.ports())
    await hang(world, tuner, "model-1")
    view = world.views["model"]

    assert set(view.hung) == {"model-1"}
    assert "spec.tuning.replaceFaultyPods" in view.hung["model-1"]
    assert view.replace == {"model-1"}
    told_of = [notice.reason for notice in world.notices]
    assert told_of.count(EventReason.ENGINE_HANGS) == 1
    assert told_of.count(EventReason.POD_REPLACED) == 1
    saved = from_data(world.memories["model"].data, world.memories["model"].binary_data)
    assert [done.uid for done in saved.revisions["rev1"].replaced] == ["model-1"]


async def test_it_is_only_told_where_the_user_wants_no_more(world: World) -> None:
    """Never is the default."""
    world.models = [replace(world.models[0], replaces=False)]
    await hang(world, Tuner(world.ports()), "model-0")

    assert set(world.views["model"].hung) == {"model-0"}
    assert world.views["model"].replace == frozenset()
    assert EventReason.POD_REPLACED not in {notice.reason for notice in world.notices}


async def test_a_new_operator_takes_no_second_pod_for_the_same_reason(world: World) -> None:
    """The hour is kept in the model's memory."""
    await hang(world, Tuner(world.ports()), "model-1")
    world.engines["model-1"].hangs = False
    world.engines["model-0"].hangs = True
    await pass_seconds(world, Tuner(world.ports()), 400)

    assert set(world.views["model"].hung) == {"model-0"}
    assert world.views["model"].replace == frozenset()


async def test_an_engine_that_goes_on_is_not_called_hung_any_more(world: World) -> None:
    """It was slow after all."""
    tuner = Tuner(world.ports())
    await hang(world, tuner, "model-0")
    world.engines["model-0"].hangs = False
    await pass_seconds(world, tuner, 30)

    assert not world.views["model"].hung


async def test_the_only_pod_stays_and_the_condition_says_why(world: World) -> None:
    """It still gives tokens; what lets it go is the user's to write."""
    only = replace(world.models[0].replicas[0])
    world.models = [replace(world.models[0], replicas=(only,))]
    limits = replace(world.models[0].policy.restart, replicas=1)
    policy = replace(world.models[0].policy, restart=limits)
    world.models = [replace(world.models[0], policy=policy)]
    del world.engines["model-1"]
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 30)
    world.engines["model-0"].drafts = False
    await pass_seconds(world, tuner, 60)
    view = world.views["model"]

    assert view.replace == frozenset()
    assert view.healthy.reason is Reason.NO_DRAFTS
    assert view.healthy.message.endswith(
        "Pod model-0 is not replaced, since no other pod serves meanwhile: raise spec.replicas, or "
        "write spec.rollout.allowDowntime: true."
    )
    told_of = [notice.reason for notice in world.notices]
    assert told_of.count(EventReason.POD_NOT_REPLACED) == 1
    assert EventReason.POD_REPLACED not in told_of


def test_a_pod_that_a_budget_keeps_is_told_where_its_fault_is() -> None:
    """The budget is the user's, and so is what to do about it."""
    cluster = Cluster(replicas=2)
    cluster.settle()
    one, other = cluster.seen().pods
    cluster.hung = {one.uid: f"Pod {one.name} hangs."}
    kept = replace(cluster.desired(), kept={one.uid: "A budget.", other.uid: "Another budget."})
    found = status(cluster.model, cluster.seen(), kept, PassFindings(None, {}, None, cluster.now))
    told_of = {each.type: each for each in found.conditions}

    assert told_of[ConditionType.READY].message == f"Pod {one.name} hangs. A budget."
    healthy = told_of[ConditionType.SPECULATION_HEALTHY]
    assert healthy.message.endswith(" Another budget.")


def test_a_hung_pod_does_not_serve_though_its_probes_succeed() -> None:
    """The status does not believe the kubelet alone."""
    cluster = Cluster(replicas=2)
    cluster.settle()
    one, _ = cluster.seen().pods
    cluster.hung = {one.uid: f"Pod {one.name} hangs."}
    ready = condition(told(cluster), ConditionType.READY)

    assert (ready.status, ready.reason) == ("False", Reason.ENGINE_HANGS)
    assert one.name in ready.message
    assert told(cluster).ready_replicas == 1


def changed(replicas: int, hangs: int, **rollout: Any) -> tuple[Cluster, Pod]:
    """A model whose pod of that number hangs, with another spec in place; and that pod."""
    cluster = Cluster(replicas=replicas, rollout=rollout)
    cluster.settle()
    cluster.last_good = key_of(cluster.model)
    pod = cluster.seen().pods[hangs]
    cluster.hung = {pod.uid: f"Pod {pod.name} hangs."}
    cluster.answers = None
    cluster.edit(replicas=replicas, rollout=rollout, **LONGER)
    return cluster, pod


@pytest.mark.parametrize("hangs", [0, 1])
def test_a_rollout_takes_the_pod_that_hangs_and_not_the_one_that_answers(hangs: int) -> None:
    """To a ReplicaSet both are ready."""
    cluster, hung = changed(2, hangs, strategy="InPlace")
    passes(cluster)
    assert hung.uid not in {pod.uid for pod in cluster.seen().pods}
    assert cluster.replicas()[hung.revision] == 1


def test_the_change_that_mends_the_only_engine_needs_no_leave_for_downtime() -> None:
    """Nothing serves, so none is lost by it."""
    cluster, hung = changed(1, 0, strategy="InPlace")
    passes(cluster)
    assert hung.uid not in {pod.uid for pod in cluster.seen().pods}


def test_only_the_pod_that_is_meant_is_deleted() -> None:
    """By its UID; its successor has another one."""
    cluster = Cluster(replicas=2)
    cluster.settle()
    one, _ = cluster.seen().pods
    cluster.replace = {one.uid, "long-gone"}

    assert [pod.uid for pod in cluster.desired().replaced] == [one.uid]


def test_the_tuner_knows_which_pods_requests_reach() -> None:
    """A pod on trial is ready long before."""
    cluster = Cluster(replicas=2)
    cluster.settle()
    one, other = cluster.seen().pods
    copy = cluster.cache.get(Reference("Pod", one.namespace, one.name))
    assert copy is not None
    labels = {**copy.manifest()["metadata"]["labels"], LABEL_SERVING: "false"}
    cluster.set_pod(one.name, metadata={"labels": labels})
    model = tuned_model(cluster.model, cluster.seen(), cluster.desired())

    assert model is not None
    assert all(replica.ready for replica in model.replicas)
    assert [replica.name for replica in model.replicas if replica.routed] == [other.name]
