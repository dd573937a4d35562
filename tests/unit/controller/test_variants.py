"""A revision's two variants, rolled out like any other change, and nothing moved on a guess."""

from __future__ import annotations

import pytest

from speculative_operator.api.conditions import ConditionType
from speculative_operator.api.names import ANNOTATION_VERDICT
from speculative_operator.api.status import ModelStatus, Revisions
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.controller.wanted.tuned_model import asked, tuned_model
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.variant import Variant, VariantChoice
from tests.unit.controller.test_status import a_view, condition, told
from tests.unit.controller.world import World

FALLBACK = {"tuning": {"fallback": {"level": "Restart"}}}
LONGER = {"model": {"maxModelLen": 4096}}


@pytest.fixture
def world() -> World:
    """A model with three replicas that speculate."""
    made = World(replicas=3, **FALLBACK)
    made.settle()
    made.choice = VariantChoice(with_(made))
    return made


def with_(world: World) -> str:
    """The key of the revision with speculation."""
    return key_of(world.model)


def without(world: World) -> str:
    """The key of the revision without."""
    return key_of(world.model, Variant.AUTOREGRESSIVE)


def leave(world: World, *, sensor: bool = False) -> None:
    """The tuner wants no speculation."""
    world.choice = VariantChoice(with_(world), Variant.AUTOREGRESSIVE, sensor)


def arguments(world: World, key: str) -> list[str]:
    """The engine's arguments of a recorded revision."""
    template = world.seen().revisions[key].recorded.template
    args: list[str] = template["spec"]["containers"][0]["args"]
    return args


def test_the_other_variant_is_the_same_pod_without_speculation(world: World) -> None:
    """No config, no schedule, no draft; all else is equal."""
    leave(world)
    world.act()
    speculative, plain = arguments(world, with_(world)), arguments(world, without(world))

    place = speculative.index("--speculative-config")
    assert plain == speculative[:place] + speculative[place + 2 :]
    facts = world.seen().revisions[without(world)].recorded.facts
    assert (facts.stands_in_for, facts.schedule) == (with_(world), False)


def test_it_is_rolled_out_pod_by_pod_and_back(world: World) -> None:
    """The same step function as for a spec change, and the same checks before a pod serves."""
    for variant, key in ((Variant.AUTOREGRESSIVE, without), (Variant.SPECULATIVE, with_)):
        world.choice = VariantChoice(with_(world), variant)
        for _ in range(30):
            world.act(answering={pod.incarnation for pod in world.seen().pods})
            assert sum(pod.routed for pod in world.seen().pods) >= 2
            world.make_ready()
        assert world.replicas() == {key(world): 3}


def test_the_first_pod_without_speculation_is_on_trial(world: World) -> None:
    """It has never served."""
    leave(world)
    (new,) = world.act().new

    assert new["metadata"]["annotations"][ANNOTATION_VERDICT] == "trial"


def test_both_records_are_kept_for_the_way_back(world: World) -> None:
    """So that an operator of other images, too, goes back to the pods of before."""
    leave(world)
    world.settle()

    assert set(world.seen().revisions) == {with_(world), without(world)}


def test_a_sensor_is_one_pod_that_speculates_on(world: World) -> None:
    """All others do not; with the wanted number of pods in all."""
    leave(world, sensor=True)
    world.settle()
    assert world.replicas() == {with_(world): 1, without(world): 2}

    leave(world)
    world.settle()
    assert world.replicas() == {without(world): 3}

    leave(world, sensor=True)
    world.settle()
    assert world.replicas() == {with_(world): 1, without(world): 2}


def test_a_model_with_a_sensor_is_settled(world: World) -> None:
    """Two revisions are what is wanted; and status tells of the one that most pods run."""
    leave(world, sensor=True)
    world.settle()

    now = told(world)

    assert condition(now, ConditionType.PROGRESSING).reason == "Settled"
    assert (now.mode, now.revisions.current) == ("Autoregressive", without(world))
    assert now.ready_replicas == 3


def test_a_sensor_is_scaled_like_the_rest(world: World) -> None:
    """Of one replica none is a sensor; it is the others that grow."""
    leave(world, sensor=True)
    world.settle()
    world.edit(replicas=5, **FALLBACK)
    world.settle()
    assert world.replicas() == {with_(world): 1, without(world): 4}

    world.edit(replicas=1, **FALLBACK)
    world.settle()
    assert world.replicas() == {without(world): 1}


def test_nothing_moves_before_the_tuner_has_spoken(world: World) -> None:
    """A new operator, in the middle: what the last one has decided is in the memory."""
    leave(world)
    while sum(count > 0 for count in world.replicas().values()) < 2:
        world.act(answering={pod.incarnation for pod in world.seen().pods})
        world.make_ready()
    before = world.replicas()
    world.choice = None

    world.settle()

    assert world.replicas() == before
    leave(world)
    world.settle()
    assert world.replicas() == {without(world): 3}


def test_a_rollout_that_has_just_begun_is_not_undone_by_a_new_operator(world: World) -> None:
    """Its Deployment stands with no pods, and status still tells of the other variant: without
    that Deployment, speculation would seem to be all that ever ran."""
    status = told(world).model_dump(mode="json", by_alias=True, exclude_none=True)
    leave(world)
    while world.replicas()[with_(world)] == 3:
        world.act()
    assert world.replicas() == {with_(world): 2, without(world): 0}
    world.model = world.model.model_copy(update={"status": status})
    world.choice = None

    world.settle()

    assert world.replicas() == {with_(world): 2, without(world): 0}


def test_a_new_operator_leaves_what_runs_without_speculation(world: World) -> None:
    """Status says which revision was current."""
    leave(world)
    world.settle()
    world.choice = None

    desired = world.settle()

    assert world.replicas() == {without(world): 3}
    assert desired.current is not None
    assert desired.current.key == without(world)


def test_a_new_spec_starts_with_speculation(world: World) -> None:
    """Nothing is known of it; what was decided was decided of another."""
    leave(world)
    world.settle()
    world.edit(replicas=3, **FALLBACK, **LONGER)

    world.settle()

    assert world.replicas() == {with_(world): 3}


def test_a_refused_spec_leaves_the_variant_that_runs(world: World) -> None:
    """With its sensor, and scaled as ever."""
    leave(world, sensor=True)
    world.settle()
    old = set(world.replicas())
    status = ModelStatus(observed_generation=1, revisions=Revisions(current=without(world)))
    choice = world.choice
    world.edit(replicas=4, runtime={"podTemplate": {"spec": {"hostNetwork": True}}}, **FALLBACK)
    world.model = world.model.model_copy(
        update={"status": {**status.wire(), "conditions": [_ACCEPTED]}}
    )
    world.choice = choice

    world.settle()

    assert set(world.replicas()) == old
    assert sorted(world.replicas().values()) == [1, 3]


_ACCEPTED = {
    "type": "Accepted",
    "status": "True",
    "reason": "Valid",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-08-23T10:00:00Z",
}


def test_a_lost_record_without_speculation_is_rebuilt_and_stays(world: World) -> None:
    """Its arguments do not say whose variant it is; the spec does."""
    leave(world)
    world.settle()
    (copy,) = [
        copy
        for reference, copy in world.seen().copies.items()
        if reference.kind == "ControllerRevision" and reference.name.endswith(without(world))
    ]
    world.cache.drop(copy.reference, copy.uid)

    world.settle()

    assert world.replicas() == {without(world): 3}


def test_the_tuner_gets_both_kinds_of_engines_under_one_key(world: World) -> None:
    """Its memory is that of the speculative revision, whichever runs."""
    leave(world, sensor=True)
    desired = world.settle()

    model = tuned_model(world.model, world.seen(), desired)

    assert model is not None
    assert model.key == with_(world)
    assert (len(model.replicas), len(model.plain)) == (1, 2)
    assert model.scheduled
    assert model.policy.choices


@pytest.mark.parametrize("length", [1, 64, 65, 200_000])
def test_a_long_word_that_asks_for_a_look_is_told_apart_and_kept_short(length: int) -> None:
    """It stands in each entry of the history, of a process that all models share."""
    one, other = asked("x" * length), asked("x" * (length - 1) + "y")

    assert one is not None
    assert len(one) <= 64
    assert one != other
    assert asked("x" * length) == one


def test_no_word_asks_for_no_look() -> None:
    """And a short one is kept as it is, as it stands in states that were saved before."""
    assert asked(None) is None
    assert asked("1767225600") == "1767225600"


def test_status_tells_of_the_variant_that_serves(world: World) -> None:
    """K is 0 at every batch size, and the view is the one under the speculative key."""
    leave(world)
    world.settle()
    view = a_view(world, key=with_(world))

    now = told(world, view=view)

    assert (now.mode, now.proposal_length) == ("Autoregressive", 0)
    assert [row.proposal_length for row in now.schedule] == [0]
    assert now.revisions.last_good == without(world)


def test_a_new_operator_tells_the_same_until_the_tuner_speaks(world: World) -> None:
    """No flicker in status."""
    leave(world)
    world.settle()
    before = told(world, view=a_view(world, key=with_(world)))
    world.choice = None

    assert told(world, before=before) == before


def test_a_trial_keeps_both_records_of_what_serves(world: World) -> None:
    """If it is rejected, there is a way back to speculation, to the pods of before."""
    old = {with_(world), without(world)}
    leave(world)
    world.settle()
    world.last_good = without(world)
    world.edit(replicas=3, **FALLBACK, **LONGER)
    world.speed = None
    world.settle()

    assert world.seen().standing(with_(world)) is Standing.TRIAL
    assert set(world.seen().revisions) == {*old, with_(world)}
