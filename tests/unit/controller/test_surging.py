"""A rollout on scarce GPUs as the controller sees it: waits, quotas, priorities, records."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionStatus, ConditionType, Reason
from speculative_operator.api.status import Condition, ModelStatus
from speculative_operator.controller.said.status import PassFindings, status
from speculative_operator.controller.seen.times import rfc3339
from speculative_operator.controller.wanted.desired import Desired, desire
from speculative_operator.controller.wanted.surging import worth_counting
from speculative_operator.controller.wanted.told import Told
from speculative_operator.plan.capacity import Need, NodeGpus, Stock
from speculative_operator.plan.surge import Counted
from tests.unit.controller.world import World

MADE = 1_790_000_000.0
TIMEOUT = 120
WORDS = "0/1 nodes are available: 1 Insufficient amd.com/gpu."
UNTRIED = {"trial": {"mode": "Off"}}
LONGER = {"model": {"maxModelLen": 4096}}


def start(replicas: int = 2, **rollout: Any) -> World:
    """A settled model whose spec has just changed, and whose surge pod, if any, has no node."""
    world = World(replicas=replicas)
    world.settle()
    world.last_good = world.desired().current.key  # type: ignore[union-attr]
    world.edit(replicas=replicas, rollout={**UNTRIED, **rollout}, **LONGER)
    for _ in range(3):
        world.act()
    for pod in world.seen().pods:
        if not pod.ready:
            world.set_pod(
                pod.name,
                metadata={"creationTimestamp": rfc3339(MADE)},
                status={
                    "conditions": [
                        {"type": "PodScheduled", "status": "False", "message": WORDS},
                    ]
                },
            )
    return world


def aim(world: World, seconds: float, counted: Counted | None = None) -> Desired:
    """What a pass aims at, so many seconds after the surge pod was made."""
    told = Told(now=MADE + seconds, last_good=world.last_good, counted=counted)
    return desire(world.model, world.seen(), world.settings, told)


def asked(desired: Desired) -> list[int]:
    """Replicas of the Deployments that are applied, old first."""
    return [manifest["spec"]["replicas"] for manifest in desired.pods]


def given_up(desired: Desired) -> str:
    """What the record of the current revision, and no other, is to say of going in place."""
    ((key, words),) = desired.in_place
    assert desired.current is not None
    assert key == desired.current.key
    return words or ""


def told(
    world: World, seconds: float, *, stock: Stock | None = None, before: ModelStatus | None = None
) -> ModelStatus:
    """Status at that time."""
    found = PassFindings(before, {}, None, MADE + seconds, stock)
    return status(world.model, world.seen(), aim(world, seconds), found)


def condition(of: ModelStatus, kind: ConditionType) -> Condition | None:
    return next((found for found in of.conditions if found.type is kind), None)


def progressing(of: ModelStatus) -> Condition:
    found = condition(of, ConditionType.PROGRESSING)
    assert found is not None
    return found


def test_the_reason_is_recorded_before_anything_else_is_done() -> None:
    """An operator that ends right then must not wait all over again."""
    world = start()
    early, late = aim(world, TIMEOUT - 1), aim(world, TIMEOUT)

    assert (early.in_place, asked(early)) == ((), [2, 1])
    assert (given_up(late), asked(late)) == (WORDS, [2, 1])


def test_after_the_record_the_surge_pod_goes_and_then_an_old_one() -> None:
    """In place, one by one; and the record is taken away at the end."""
    world = start()
    world.annotate_in_place(WORDS)

    steps = [asked(aim(world, 0))]
    world.act()
    steps.append(asked(aim(world, 0)))

    assert steps == [[2, 0], [1, 0]]
    world.settle()
    assert list(world.replicas().values()) == [2]
    assert all(seen.in_place is None for seen in world.seen().revisions.values())


def test_the_record_stays_while_one_pod_of_several_is_on_trial() -> None:
    """Nothing moves then, but the others are still to follow: they must not surge once more."""
    world = World(replicas=3, rollout={})
    world.settle()
    world.last_good = world.desired().current.key  # type: ignore[union-attr]
    world.edit(replicas=3, rollout={}, **LONGER)
    world.act()
    world.annotate_in_place(WORDS)
    world.speed = None
    answering: set[str] = set()
    for _ in range(8):
        world.act(answering)
        world.make_ready()
        answering = {pod.incarnation for pod in world.seen().pods}
    on_trial = world.desired(answering)

    assert on_trial.probation is not None
    assert world.replicas() == {world.last_good: 2, on_trial.probation.key: 1}
    assert world.seen().revisions[on_trial.probation.key].in_place == WORDS


def test_a_record_of_a_rollout_that_was_cut_short_is_taken_away() -> None:
    """Going back to that revision later is another rollout, which may find its GPUs."""
    world = start()
    world.annotate_in_place(WORDS)
    cut_short = world.desired().current
    assert cut_short is not None
    world.edit(replicas=2, rollout=UNTRIED, model={"maxModelLen": 8192})
    world.act()
    assert world.seen().revisions[cut_short.key].in_place is None
    assert world.desired().in_place == ()


def test_a_count_that_finds_no_room_saves_the_attempt() -> None:
    """The pod that could not fit is never made."""
    world = start()
    world.act()
    fresh = World(replicas=2)
    fresh.settle()
    fresh.last_good = world.last_good
    fresh.edit(replicas=2, rollout=UNTRIED, **LONGER)
    fresh.act()

    assert worth_counting(fresh.model.spec.rollout, aim(fresh, 0).states, fresh.seen())
    assert given_up(aim(fresh, 0, Counted("no room"))) == "no room"
    assert asked(aim(fresh, 0, Counted(None))) == [2, 1]


def test_the_status_says_until_when_one_more_is_waited_for() -> None:
    """Nothing is missing meanwhile; the words are the scheduler's."""
    found = progressing(told(start(), 20))

    assert found.reason == Reason.ROLLING_OUT
    assert rfc3339(MADE + TIMEOUT) in found.message
    assert WORDS in found.message


def test_of_a_pod_that_the_scheduler_has_not_looked_at_no_cause_is_told() -> None:
    """It has just been made."""
    world = start()
    for pod in world.seen().pods:
        if not pod.ready:
            world.set_pod(pod.name, status={"conditions": []})

    message = progressing(told(world, 0)).message

    assert message.endswith(f"it goes in place at {rfc3339(MADE + TIMEOUT)}.")


def test_one_replica_serves_on_and_names_the_field() -> None:
    """A change is not to make an outage."""
    world = start(replicas=1)
    late = told(world, TIMEOUT)

    assert (aim(world, TIMEOUT).in_place, asked(aim(world, TIMEOUT))) == ((), [1, 1])
    assert progressing(late).reason == Reason.DOWNTIME_NOT_ALLOWED
    assert "rollout.allowDowntime: true" in progressing(late).message
    assert condition(late, ConditionType.STALLED) is not None


def test_a_pod_that_may_not_go_first_is_told_why_by_what_the_user_chose() -> None:
    """Nobody has looked for a GPU then, so none is said to be missing."""
    message = progressing(told(start(replicas=1, strategy="InPlace"), 0)).message

    assert "rollout.strategy is InPlace" in message
    assert "GPU" not in message.split("allowDowntime", maxsplit=1)[0]


def test_a_pod_that_may_evict_others_is_told_so_where_nothing_else_may_come_first() -> None:
    """Free GPUs alone would not help, as nobody counts them."""
    world = World(replicas=1)
    world.settle()
    world.last_good = world.desired().current.key  # type: ignore[union-attr]
    for pod in world.seen().pods:
        world.set_pod(pod.name, spec={"priority": 1000})
    world.edit(replicas=1, rollout=UNTRIED, **LONGER)
    world.act()
    found = progressing(told(world, 0))

    assert found.reason == Reason.DOWNTIME_NOT_ALLOWED
    assert "one pod more may evict other pods" in found.message
    assert "preemptionPolicy: Never" in found.message


def test_in_place_is_told_in_the_words_of_its_record() -> None:
    """One pod more need not have been tried: the GPUs were counted, or the user wants it so."""
    world = start()
    world.annotate_in_place("No node has 8 amd.com/gpu free.")

    assert progressing(told(world, 0)).message.endswith("In place: No node has 8 amd.com/gpu free.")


def test_what_downtime_costs_is_said_before() -> None:
    """As long as the last start took."""
    world = start(replicas=1, allowDowntime=True)
    (serving,) = (pod for pod in world.seen().pods if pod.ready)
    times = {"PodScheduled": rfc3339(MADE), "Ready": rfc3339(MADE + 300)}
    world.set_pod(
        serving.name,
        status={
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": time}
                for kind, time in times.items()
            ]
        },
    )

    assert "the last start took 300 s" in given_up(aim(world, TIMEOUT))


def test_pods_that_wait_tell_how_many_gpus_are_missing_and_who_is_close() -> None:
    """With the scheduler's words; where GPUs are counted, with the nodes that come close."""
    world = World(replicas=2)
    world.act()
    for pod in world.seen().pods:
        unscheduled = {"type": "PodScheduled", "status": "False", "message": WORDS}
        world.set_pod(pod.name, status={"conditions": [unscheduled]})
    close = Stock(Need("amd.com/gpu", 1), (NodeGpus("a", 8, 8),))

    plain = condition(told(world, 0), ConditionType.READY)
    counted = condition(told(world, 0, stock=close), ConditionType.READY)
    never = condition(told(world, 0, stock=Stock(close.need, ())), ConditionType.READY)

    assert plain is not None
    assert plain.reason == Reason.WAITING_FOR_GPUS
    assert plain.message == f"2 pods wait for 1 amd.com/gpu each, 2 in all. The scheduler: {WORDS}"
    assert counted is not None
    assert "Closest: a has 0 of 8 free." in counted.message
    assert never is not None
    assert never.reason == Reason.NO_NODE_FITS


def test_a_pod_that_hangs_is_named_with_its_node() -> None:
    """Somebody has to look at that node; its GPUs are not free."""
    world = start(strategy="InPlace")
    old = world.seen().pods[0]
    world.set_pod(
        old.name,
        metadata={"deletionTimestamp": rfc3339(MADE)},
        spec={"nodeName": "node-7"},
    )

    assert progressing(told(world, 29)).reason == Reason.ROLLING_OUT
    found = progressing(told(world, 31))
    assert found.reason == Reason.POD_NOT_ENDING
    assert old.name in found.message
    assert "node-7" in found.message


@pytest.mark.parametrize("moves", [599, 601, 650])
def test_a_rollout_that_does_not_move_says_so_until_it_does(moves: int) -> None:
    """Counted from the last pod that moved, which may come in the very second of the deadline, and
    by a node's clock that is behind ours; an older generation's time does not count."""
    world = start(strategy="Surge", progressDeadlineSeconds=600)
    first = told(world, 0)

    assert progressing(told(world, 599, before=first)).status is ConditionStatus.TRUE
    overdue = told(world, 601, before=first)
    assert progressing(overdue).reason == Reason.PROGRESS_DEADLINE_EXCEEDED
    assert WORDS in progressing(overdue).message
    assert condition(overdue, ConditionType.STALLED) is not None
    assert progressing(told(world, 700, before=overdue)).reason == progressing(overdue).reason
    waits = next(pod for pod in world.seen().pods if not pod.ready)
    world.set_pod(waits.name, metadata={"creationTimestamp": rfc3339(MADE + moves)})
    assert progressing(told(world, 701, before=overdue)).status is ConditionStatus.TRUE


def test_a_trial_that_does_not_move_says_what_is_waited_for() -> None:
    """Not that an engine loads, where it has long been loaded and cannot be reached."""
    world = start(strategy="Surge", progressDeadlineSeconds=600)
    waits = next(pod for pod in world.seen().pods if not pod.ready)
    world.set_pod(waits.name, status={"conditions": []})
    overdue = told(world, 601, before=told(world, 0))

    assert progressing(overdue).reason == Reason.PROGRESS_DEADLINE_EXCEEDED
    assert progressing(overdue).message.endswith("Its first pod is being started.")


@pytest.mark.parametrize(("policy", "gives_up"), [("PreemptLowerPriority", True), ("Never", False)])
def test_a_surge_pod_must_not_evict_anybody(policy: str, gives_up: bool) -> None:
    """What its class may do shows on pods of that class."""
    runtime = {"priorityClassName": "important"}
    world = World(replicas=2, runtime=runtime)
    world.settle()
    world.last_good = world.desired().current.key  # type: ignore[union-attr]
    for pod in world.seen().pods:
        world.set_pod(pod.name, spec={"priority": 1000, "preemptionPolicy": policy})
    world.edit(replicas=2, rollout=UNTRIED, runtime=runtime, **LONGER)
    world.act()

    assert (aim(world, 0).in_place != ()) is gives_up
    assert aim(world, 0, Counted(None)).in_place == ()


@pytest.mark.parametrize(("priority", "gives_up"), [(1000, True), (0, False)])
def test_a_default_priority_class_counts_too(priority: int, gives_up: bool) -> None:
    """Pods without a class get the cluster's default one, where it has one."""
    world = World(replicas=2)
    world.settle()
    world.last_good = world.desired().current.key  # type: ignore[union-attr]
    for pod in world.seen().pods:
        world.set_pod(pod.name, spec={"priority": priority})
    world.edit(replicas=2, rollout=UNTRIED, **LONGER)
    world.act()

    assert (aim(world, 0).in_place != ()) is gives_up


@pytest.mark.parametrize("mode", ["Auto", "Off"])
def test_a_parked_model_has_nothing_on_trial_and_no_deadline(mode: str) -> None:
    """A change of the spec meanwhile wants no pod, so nothing of it can be late."""
    rollout = {"trial": {"mode": mode}, "progressDeadlineSeconds": 600}
    world = World(replicas=0, rollout=rollout)
    world.settle()
    world.last_good = world.desired().current.key  # type: ignore[union-attr]
    world.edit(replicas=0, rollout=rollout, **LONGER)
    world.settle()
    first = told(world, 0)
    late = told(world, 10_000, before=first)

    assert world.desired().probation is not None
    assert progressing(first).reason == Reason.SETTLED
    assert progressing(late).reason == Reason.SETTLED
    assert condition(late, ConditionType.STALLED) is None


def test_a_parked_models_pod_that_hangs_is_named_and_is_no_missed_deadline() -> None:
    """Somebody has to look at its node, but no pod is waited for."""
    rollout = {"progressDeadlineSeconds": 600}
    world = World(replicas=1, rollout=rollout)
    world.settle()
    pod = world.seen().pods[0]
    world.edit(replicas=0, rollout=rollout)
    ending = {"metadata": {"deletionTimestamp": rfc3339(MADE)}, "spec": {"nodeName": "node-7"}}
    world.set_pod(pod.name, **ending)
    first = told(world, 0)
    late = told(world, 10_000, before=first)

    assert progressing(first).reason == Reason.SCALING
    assert progressing(late).reason == Reason.POD_NOT_ENDING
    assert condition(late, ConditionType.STALLED) is None


def test_a_quota_that_refuses_the_surge_pod_counts_as_waiting() -> None:
    """No pod stands then; the Deployment says since when."""
    world = start()
    waits = next(pod for pod in world.seen().pods if not pod.ready)
    world.delete("Pod", waits.name)
    world.set_failure(waits.revision, "exceeded quota: gpus", rfc3339(MADE))

    assert aim(world, TIMEOUT - 1).in_place == ()
    assert given_up(aim(world, TIMEOUT)) == "exceeded quota: gpus"
