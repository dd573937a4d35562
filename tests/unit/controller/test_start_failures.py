"""Engines that end before they serve: started again where it may help, else GPUs are free."""

from __future__ import annotations

import pytest

from speculative_operator.api.conditions import ConditionType, Reason
from speculative_operator.api.names import ANNOTATION_REFRESH
from speculative_operator.api.status import ModelStatus
from speculative_operator.controller.said.transitions import notices
from speculative_operator.controller.seen.causes import Ending
from speculative_operator.controller.seen.revision_verdict import SPECULATION, Standing
from speculative_operator.controller.wanted.tuned_model import tuned_model
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.variant import Variant
from tests.support.endings import ending
from tests.unit.controller.test_status import condition, told
from tests.unit.controller.world import World

FAIL = {"tuning": {"fallback": {"onStartFailure": "Fail"}}}
DRAFTED = {
    "speculation": {
        "method": "dspark",
        "draft": {"source": "hf://example/draft"},
        "options": {"attentionBackend": "TRITON_ATTN", "enableAdaptiveVerification": True},
    }
}
LONGER = {"model": {"maxModelLen": 4096}}
REFUSED = ending("unknown-flag")


def started(**spec: object) -> World:
    """A model whose first pods were just made."""
    world = World(**spec)
    world.act()
    world.act()
    assert world.seen().pods
    return world


def ended(world: World, name: str, starts: int = 3) -> None:
    """The engines end, and the operator takes it in."""
    world.end_engines(ending(name), starts)
    for _ in range(8):
        world.act()


def asked(world: World) -> str:
    """The key of what the spec asks for."""
    return key_of(world.model)


def plain(world: World) -> str:
    """The key of its variant without speculation."""
    return key_of(world.model, Variant.AUTOREGRESSIVE)


def status(world: World) -> ModelStatus:
    """What users read."""
    return told(world)


@pytest.mark.parametrize("strategy", ["InPlace", "Surge"])
def test_what_no_start_can_mend_gives_its_gpus_back(strategy: str) -> None:
    """Eight GPUs in a crash loop serve nobody, and this one never ends."""
    world = started(replicas=2, rollout={"strategy": strategy}, **FAIL)
    ended(world, "unknown-flag", starts=1)

    assert world.replicas() == {asked(world): 0}
    assert world.seen().standing(asked(world)) is Standing.BAD
    found = status(world)
    assert condition(found, ConditionType.READY).reason == Reason.CONFIGURATION_REFUSED
    assert condition(found, ConditionType.STALLED).reason == Reason.CONFIGURATION_REFUSED
    assert "spec.runtime.args" in condition(found, ConditionType.READY).message
    assert "No pods are started" in condition(found, ConditionType.STALLED).message


@pytest.mark.parametrize("name", ["unknown", "hub-unreachable", "no-gpu", "gpu-taken"])
def test_what_may_pass_is_started_again_for_ever(name: str) -> None:
    """Network, node and device come back, and what nobody knows may too."""
    world = started()
    ended(world, name, starts=50)

    assert world.replicas() == {asked(world): 1}
    assert world.seen().standing(asked(world)) is None


def test_what_mostly_stays_is_tried_some_times() -> None:
    """Out of memory once may be the pod before; three times in a row it is not."""
    world = started(**FAIL)
    ended(world, "hip-out-of-memory", starts=2)
    assert world.replicas() == {asked(world): 1}
    assert condition(status(world), ConditionType.READY).reason == Reason.OUT_OF_GPU_MEMORY

    ended(world, "hip-out-of-memory", starts=3)
    assert world.replicas() == {asked(world): 0}


def test_a_revision_that_has_served_is_never_given_up() -> None:
    """What killed its engine now was no matter of the start."""
    world = World()
    world.settle()
    world.last_good = asked(world)
    world.lose_readiness()
    ended(world, "hip-out-of-memory", starts=9)

    assert world.replicas() == {asked(world): 1}


def test_another_spec_is_tried_at_once_and_the_same_by_refresh() -> None:
    """A new key is a revision of which nothing is known."""
    world = started(**FAIL)
    ended(world, "unknown-flag")
    world.edit(**FAIL, **LONGER)
    world.act()
    world.act()
    assert world.replicas()[asked(world)] == 1

    world.edit(**FAIL)
    ended(world, "unknown-flag")
    assert world.replicas()[asked(world)] == 0

    world.edit(annotations={ANNOTATION_REFRESH: "again"}, **FAIL)
    world.act()
    world.act()
    assert world.replicas()[asked(world)] == 1


def test_a_mended_secret_is_tried_by_refresh_and_status_says_so() -> None:
    """The operator reads no Secret, so it cannot see that one was mended."""
    world = started(**FAIL)
    ended(world, "gated")

    message = condition(status(world), ConditionType.READY).message
    assert world.replicas() == {asked(world): 0}
    assert "spec.model.credentials" in message
    assert ANNOTATION_REFRESH in message


def test_speculation_that_does_not_start_is_done_without() -> None:
    """The target runs, so requests are served; what is missing is told and stays told."""
    world = started()
    ended(world, "vocabulary", starts=1)
    verdict = world.seen().revisions[asked(world)].verdict
    assert verdict is not None
    assert verdict.leave_out == SPECULATION

    world.settle()
    assert world.replicas() == {plain(world): 1}
    found = status(world)
    healthy = condition(found, ConditionType.SPECULATION_HEALTHY)
    assert condition(found, ConditionType.READY).status == "True"
    assert (healthy.status, healthy.reason) == ("False", Reason.SPECULATION_FAILS)
    assert "vocab_size=576" in healthy.message
    assert condition(found, ConditionType.STALLED).reason == Reason.DRAFT_DOES_NOT_FIT
    assert found.mode == "Autoregressive"
    assert found.revisions.current == plain(world)


def test_only_the_option_that_fails_is_left_out_and_then_the_next_one() -> None:
    """What is left of speculation still pays; each try is remembered on its own record."""
    world = started(**DRAFTED)
    ended(world, "adaptive-verification", starts=1)
    reduced = key_of(world.model, left_out=("enable_adaptive_verification",))
    assert world.replicas() == {reduced: 1}
    facts = world.seen().revisions[reduced].recorded.facts
    assert facts.left_out == ("enable_adaptive_verification",)

    ended(world, "no-attention-backend", starts=1)
    twice = key_of(world.model, left_out=("attention_backend", "enable_adaptive_verification"))
    assert world.replicas() == {twice: 1}
    assert "attention_backend" not in str(world.seen().revisions[twice].recorded.template)

    world.settle()
    healthy = condition(status(world), ConditionType.SPECULATION_HEALTHY)
    assert (healthy.status, healthy.reason) == ("False", Reason.REDUCED)
    assert "speculation.options.enableAdaptiveVerification" in healthy.message

    ended_again = World(**DRAFTED)
    assert asked(ended_again) != reduced


def test_the_tuner_has_nothing_to_tune_without_speculation_and_the_rest_of_it_otherwise() -> None:
    """It must not look for a speculation that does not start, nor believe to have left it."""
    world = started()
    ended(world, "vocabulary")
    world.settle()
    tuned = tuned_model(world.model, world.seen(), world.desired())
    assert tuned is not None
    assert (tuned.key, tuned.policy.choices, tuned.scheduled) == (plain(world), (), False)
    assert not tuned.restart_helps
    assert [replica.ready for replica in tuned.replicas] == [True]

    world = started(**DRAFTED)
    ended(world, "adaptive-verification")
    world.settle()
    tuned = tuned_model(world.model, world.seen(), world.desired())
    assert tuned is not None
    assert tuned.key == key_of(world.model, left_out=("enable_adaptive_verification",))
    assert tuned.policy.choices


def test_where_nothing_starts_nothing_runs() -> None:
    """Without speculation it does not fit either: told as it is, and no GPU is held."""
    world = started()
    ended(world, "kv-cache")
    assert world.replicas() == {plain(world): 1}
    ended(world, "kv-cache")

    assert set(world.replicas().values()) == {0}
    assert condition(status(world), ConditionType.READY).reason == Reason.OUT_OF_GPU_MEMORY


def test_an_older_revision_that_is_good_goes_before_a_stand_in() -> None:
    """It has all of its speculation."""
    world = World()
    world.settle()
    old = world.last_good = asked(world)
    world.edit(**LONGER)
    for _ in range(4):
        world.act()
    ended(world, "vocabulary")
    world.settle()

    assert world.replicas() == {old: 1}


def changed() -> World:
    """A model with two replicas and a pod on trial that was just made."""
    world = World(replicas=2)
    world.settle()
    world.last_good = asked(world)
    world.edit(replicas=2, **LONGER)
    for _ in range(4):
        world.act()
    return world


@pytest.mark.parametrize(("name", "rejected"), [("no-gpu", False), ("unknown", True)])
def test_a_trial_is_not_rejected_for_what_passes_by_itself(name: str, *, rejected: bool) -> None:
    """A bad revision is never tried again, so the network must not make one; a crash loop that
    nobody understands must not go on for hours beside one that serves."""
    world = changed()
    ended(world, name, starts=4)

    assert (world.seen().standing(asked(world)) is Standing.BAD) == rejected


def test_fail_and_serve_are_live() -> None:
    """`onStartFailure` shapes no pod."""
    world = started(**FAIL)
    ended(world, "vocabulary")
    assert world.replicas() == {asked(world): 0}

    world.edit()
    world.settle()
    assert world.replicas() == {plain(world): 1}


def test_a_new_operator_knows_what_stands_in_and_why() -> None:
    """Nothing of it is in memory: the record says it, and the tuner has not spoken yet."""
    world = started()
    ended(world, "vocabulary")
    world.settle()
    world.last_good, world.choice = None, None

    assert world.settle().current is not None
    assert world.replicas() == {plain(world): 1}


def test_it_is_told_once() -> None:
    """By an Event of its own: it is no rollback."""
    world = started()
    before = status(world)
    ended(world, "vocabulary")
    world.settle()
    after = status(world)

    reasons = [notice.reason for notice in notices(before, after)]
    assert "StartFailed" in reasons
    assert "RolledBack" not in reasons
    assert "StartFailed" not in [notice.reason for notice in notices(after, after)]


def test_a_pod_that_the_kubelet_refuses_is_a_fault_of_the_node() -> None:
    """Such a pod never had a container."""
    world = started()
    world.refuse_pods("UnexpectedAdmissionError", "Allocate failed due to no healthy devices")
    world.act()

    assert condition(status(world), ConditionType.READY).reason == Reason.DEVICE_FAULT


def test_a_crash_loop_ends_with_the_first_text_that_is_sure() -> None:
    """It may have begun with something that looked transient."""
    world = started(**FAIL)
    ended(world, "hub-unreachable", starts=4)
    world.end_engines(Ending("Error", 2, REFUSED.message), starts=5)
    world.act()
    world.act()

    assert world.replicas() == {asked(world): 0}
    assert ANNOTATION_REFRESH in condition(status(world), ConditionType.STALLED).message


def test_a_reduced_form_that_serves_goes_on_where_no_stand_in_is_wanted_any_more() -> None:
    """`Fail` starts no stand-in; what serves is no reason for an outage."""
    world = started(**DRAFTED)
    ended(world, "adaptive-verification", starts=1)
    world.settle()
    reduced = key_of(world.model, left_out=("enable_adaptive_verification",))
    assert world.replicas() == {reduced: 1}

    world.edit(**DRAFTED, **FAIL)
    world.settle()

    assert world.replicas() == {reduced: 1}
