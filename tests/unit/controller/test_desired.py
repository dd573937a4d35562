"""What a pass aims at, played on a cluster of plain dicts."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.names import ANNOTATION_VERDICT
from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.resources.controller_revision import recorded
from tests.unit.controller.world import World, upgraded

LONGER = {"model": {"maxModelLen": 4096}}
EVEN_LONGER = {"model": {"maxModelLen": 8192}}


@pytest.fixture
def world() -> World:
    """A model with two replicas that has settled."""
    made = World(replicas=2)
    made.last_good = _key(made)
    made.settle()
    return made


def _key(world: World) -> str:
    current = world.desired().current
    assert current is not None
    return current.key


def _let_it_start(world: World) -> None:
    """As many passes as a pod needs to be made and labelled, long before it is Ready."""
    for _ in range(4):
        world.act()


def test_a_new_model_gets_all_its_pods_in_one_pass() -> None:
    """Nothing serves that could be disturbed."""
    world = World(replicas=3)

    desired = world.act()

    assert world.replicas() == {_key(world): 3}
    (new,) = desired.new
    assert "annotations" not in new["metadata"]
    assert desired.labels == ()


def test_a_settled_model_asks_for_what_stands(world: World) -> None:
    """The same manifests again, and nothing to label, prove or remove."""
    desired = world.desired()

    assert desired.new == ()
    assert (desired.labels, desired.leftovers, desired.found) == ((), (), ())
    assert world.settle().pods == desired.pods


def test_a_rollout_ends_with_the_new_revision_alone(world: World) -> None:
    """Its predecessor's Deployment, record and schedule are gone."""
    old = _key(world)
    world.edit(replicas=2, **LONGER)

    world.settle()

    assert world.replicas() == {_key(world): 2}
    assert not [ref for ref in world.seen().copies if old in ref.name]


def test_a_rollout_never_takes_more_than_one_pod_of_two(world: World) -> None:
    """Played to its end, pass by pass."""
    world.edit(replicas=2, **LONGER)
    for _ in range(20):
        world.act(answering={pod.incarnation for pod in world.seen().pods})
        assert sum(pod.routed for pod in world.seen().pods) >= 1
        world.make_ready()


def test_a_second_revision_is_on_trial_and_its_pods_off_the_service(world: World) -> None:
    """Another one serves, so it has something to prove."""
    world.edit(replicas=2, **LONGER)
    desired = world.act()
    _let_it_start(world)

    (new,) = desired.new
    assert new["metadata"]["annotations"][ANNOTATION_VERDICT] == "trial"
    (pod,) = world.seen().pods_of(_key(world))
    assert pod.serving_label == "false"


def test_a_pod_on_trial_that_is_only_ready_proves_nothing(world: World) -> None:
    """It must list the served names too."""
    world.edit(replicas=2, **LONGER)
    _let_it_start(world)
    world.make_ready()
    _let_it_start(world)

    assert not world.desired().found
    assert not [pod for pod in world.seen().pods_of(_key(world)) if pod.routed]


def test_the_first_pod_that_passes_proves_its_revision(world: World) -> None:
    """Then all its pods serve like any other."""
    world.edit(replicas=2, **LONGER)
    _let_it_start(world)
    world.make_ready()
    (pod,) = world.seen().pods_of(_key(world))

    ((key, verdict),) = world.act(answering={pod.incarnation}).found
    assert (key, verdict.standing) == (_key(world), Standing.GOOD)
    world.act()
    assert world.seen().pods_of(_key(world))[0].routed


def test_a_newer_spec_sets_an_unfinished_revision_to_zero(world: World) -> None:
    """Nobody wants it any more, and it has never served."""
    first = _key(world)
    world.edit(replicas=2, **LONGER)
    for _ in range(3):
        world.act()
    second = _key(world)
    world.edit(replicas=2, **EVEN_LONGER)
    for _ in range(4):
        world.act()

    assert second not in world.replicas()
    assert world.replicas()[first] == 1
    assert world.replicas()[_key(world)] == 1


def test_other_images_of_the_operator_change_no_template(world: World) -> None:
    """Pods are rendered from their record."""
    before = world.desired()

    assert upgraded(world).desired().pods == before.pods


def test_a_deleted_record_comes_back_word_for_word(world: World) -> None:
    """Not as the operator of today would write it."""
    key = _key(world)
    record = world.seen().revisions[key].manifest
    world.delete("ControllerRevision", record["metadata"]["name"])

    desired = upgraded(world).desired()

    (new,) = desired.new
    assert new["data"] == record["data"]
    assert "uid" not in new["metadata"]


def test_a_deleted_schedule_comes_back_as_the_tuner_left_it(world: World) -> None:
    """The engines play it; a start table would be a change."""
    key = _key(world)
    name = f"{world.model.metadata.name}-{key}-schedule"
    text = '{"protocol":1,"table":[[1,256,2]]}'
    (schedule,) = [c for ref, c in world.seen().copies.items() if ref.name == name]
    manifest = schedule.manifest()
    manifest["metadata"]["resourceVersion"] = "900"
    world.cache.put({**manifest, "data": {"schedule.json": text}})
    world.delete("ConfigMap", name)

    restored = [m for m in world.desired().before_pods if m["metadata"]["name"] == name]

    assert restored[0]["data"] == {"schedule.json": text}


def test_what_the_tuner_writes_is_not_rendered(world: World) -> None:
    """Two who write one field would fight."""
    maps = [m for m in world.desired().before_pods if m["kind"] == "ConfigMap"]

    assert len(maps) == 2
    assert all(set(m) == {"apiVersion", "kind", "metadata"} for m in maps)


def test_a_refused_spec_leaves_the_newest_revision_cared_for(world: World) -> None:
    """Its pods serve, so they are scaled and repaired as ever."""
    old = _key(world)
    world.edit(replicas=3, runtime={"podTemplate": {"spec": {"hostNetwork": True}}})

    desired = world.act()

    assert (desired.accepted.status, desired.accepted.reason) == (
        ConditionStatus.FALSE,
        Reason.INVALID,
    )
    assert world.replicas() == {old: 3}


def test_a_spec_that_is_refused_from_the_start_makes_nothing() -> None:
    """There is nothing to fall back to."""
    world = World(runtime={"podTemplate": {"spec": {"hostNetwork": True}}})

    desired = world.desired()

    assert desired.current is None
    assert desired.before_pods == desired.pods == ()


def test_a_model_scaled_to_zero_keeps_its_revision(world: World) -> None:
    """It comes back with the same template."""
    key = _key(world)
    world.edit(replicas=0)

    world.settle()

    assert world.replicas() == {key: 0}
    assert key in world.seen().revisions


def test_a_pods_label_that_somebody_changed_is_put_back(world: World) -> None:
    """Off the Service it would serve nobody."""
    pod = world.seen().pods[0]
    world._change_pod(pod.name, labels={"speculation.dev/serving": "no"})

    assert [(p.name, to) for p, to in world.desired().labels] == [(pod.name, "true")]


def test_a_new_deployment_is_made_empty_before_any_pod_goes_for_it(world: World) -> None:
    """The API server may refuse it, and then what serves must still be there."""
    old = _key(world)
    world.edit(replicas=2, **LONGER)

    world.act()

    assert world.replicas() == {old: 2, _key(world): 0}
    world.act()
    assert world.replicas()[old] == 1


def _lose_record(world: World, key: str) -> None:
    """Deleted while no operator ran: not even the last copy of it is known."""
    (copy,) = [
        copy
        for reference, copy in world.seen().copies.items()
        if reference.kind == "ControllerRevision" and reference.name.endswith(key)
    ]
    world.cache.drop(copy.reference, copy.uid)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"tuning": {"mode": "Off"}},
        {"speculation": {"method": "none"}},
        {"model": {"servedNames": ["a", "b"], "maxNumSeqs": 64}},
    ],
)
def test_a_lost_record_is_rebuilt_from_its_deployment(spec: dict[str, Any]) -> None:
    """Today's images would be other pods; and what the tuner must know is in the arguments."""
    world = World(replicas=2, **spec)
    world.settle()
    before = world.desired()
    assert before.current is not None
    _lose_record(world, before.current.key)

    after = upgraded(world).desired()

    assert after.pods == before.pods
    (new,) = after.new
    assert "annotations" not in new["metadata"]
    assert recorded(new).template == before.current.template
    facts, rebuilt = before.current.facts, recorded(new).facts
    told = ("method", "schedule", "max_num_seqs", "served_names", "startup_seconds")
    played = (*told, "capacity", "initial", "choices") if facts.schedule else told
    assert {name: getattr(rebuilt, name) for name in played} == {
        name: getattr(facts, name) for name in played
    }


def test_a_superseded_revision_without_a_record_goes_by_the_rollout(world: World) -> None:
    """Its pods serve: they are replaced one at a time like any others."""
    old = _key(world)
    _lose_record(world, old)
    world.edit(replicas=2, **LONGER)

    for _ in range(3):
        world.act()

    assert world.replicas() == {old: 1, _key(world): 1}
    world.settle()
    assert world.replicas() == {_key(world): 2}


def test_a_deployment_that_cannot_be_read_stays_while_its_pods_are_ready(world: World) -> None:
    """Somebody has changed its arguments; deleting it would end what serves."""
    old = _key(world)
    _lose_record(world, old)
    world.edit(replicas=2, **LONGER)
    (copy,) = [c for ref, c in world.seen().copies.items() if ref.kind == "Deployment"]
    manifest = copy.manifest()
    manifest["spec"]["template"]["spec"]["containers"][0]["args"] = ["model"]
    manifest["metadata"]["resourceVersion"] = "900"
    world.cache.put(manifest)

    assert world.desired().leftovers == ()
    for pod in world.seen().pods:
        world._change_pod(pod.name, ready=False)
    assert "Deployment" in {copy.reference.kind for copy in world.desired().leftovers}


def test_a_spec_refused_during_a_rollback_leaves_the_rollback_its_aim(world: World) -> None:
    """The newest record is of what the user has just turned away from."""
    first = _key(world)
    world.edit(replicas=2, **LONGER)
    _let_it_start(world)
    status = {
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Valid",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-08-23T10:00:00Z",
            }
        ],
        "revisions": {"current": first},
    }
    world.edit(replicas=2, runtime={"podTemplate": {"spec": {"hostNetwork": True}}})
    world.model = world.model.model_copy(update={"status": status})

    assert _key(world) == first


def test_our_service_account_goes_once_no_pod_has_it(world: World) -> None:
    """The user has named another one; pods of the revision before still need ours."""
    world.edit(replicas=2, runtime={"serviceAccountName": "theirs"})
    _let_it_start(world)
    name = world.model.metadata.name
    ours = Reference("ServiceAccount", world.model.metadata.namespace, name)
    assert ours in world.seen().copies

    world.settle()

    assert ours not in world.seen().copies


def test_several_replicas_have_a_disruption_budget() -> None:
    """A drain takes one at a time; with one replica a budget would only block the drain."""
    world = World(replicas=3)
    world.settle()
    name = world.model.metadata.name
    budget = Reference("PodDisruptionBudget", world.model.metadata.namespace, name)
    copy = world.seen().copies[budget]

    assert copy.manifest()["spec"]["minAvailable"] == 2

    world.edit(replicas=1)
    world.settle()
    assert budget not in world.seen().copies


def test_a_disruption_budget_counts_the_pods_that_the_service_reaches() -> None:
    """A ready pod on trial off the Service must not let a drain take the one that serves, nor may
    the old Deployment, which asks for one of two pods then."""
    kinds = {manifest["kind"]: manifest for manifest in World(replicas=2).desired().before_pods}
    budget, selector = kinds["PodDisruptionBudget"]["spec"], kinds["Service"]["spec"]["selector"]

    assert budget["selector"] == {"matchLabels": selector}
    assert budget["minAvailable"] == 1
    assert "maxUnavailable" not in budget


def test_a_disruption_budget_can_be_left_out_and_never_allows_all_pods() -> None:
    """Somebody may have one of their own; and a wide bound still leaves one that serves."""
    none = World(replicas=3, rollout={"disruptionBudget": False}).desired()
    wide = World(replicas=3, rollout={"maxUnavailable": 5}).desired()
    kinds = {manifest["kind"]: manifest for manifest in wide.before_pods}

    assert "PodDisruptionBudget" not in {manifest["kind"] for manifest in none.before_pods}
    assert kinds["PodDisruptionBudget"]["spec"]["minAvailable"] == 1


def test_tight_memory_is_told_and_hinders_nothing() -> None:
    """The user may know what they do."""
    desired = World(model={"weightsSize": "165Gi"}).act()

    assert desired.accepted.status is ConditionStatus.TRUE
    assert desired.accepted.reason == Reason.MEMORY_TIGHT
    assert desired.pods
