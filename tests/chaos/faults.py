"""The faults, one after the other, and what each of them may cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from speculative_operator.api.conditions import EventReason
from tests.chaos import harm
from tests.chaos.stage import Stage

TUNED = frozenset({EventReason.PROPOSAL_LENGTH_CHANGED})
"""What the tuner may decide at any time, since step times are noisy: one K above 0 for another."""

FALLBACK = TUNED | {EventReason.FELL_BACK, EventReason.SPECULATION_RESUMED}

BY_RESTART = FALLBACK | {EventReason.FELL_BACK_BY_RESTART, EventReason.RESTART_WOULD_PAY}


@dataclass(frozen=True)
class Fault:
    """`cut` and `outage` as in `checker.requests`; `justified` are the reasons of decisions that it
    gives cause for; `long` keeps it out of the short form."""

    name: str
    inject: Callable[[Stage], int]
    cut: bool = False
    outage: bool = False
    justified: frozenset[str] = TUNED
    long: bool = False


FAULTS = (
    Fault("the operator is killed", harm.kill_the_operator),
    Fault("the operator is killed at each step of a rollout", harm.kill_at_each_step_of_a_rollout),
    Fault(
        "the operator is killed at each step of a fallback and back",
        harm.kill_at_each_step_of_a_fallback,
        justified=FALLBACK,
        long=True,
    ),
    Fault(
        "the operator is killed at each step of a fallback by restart and back",
        harm.kill_at_each_step_of_a_fallback_by_restart,
        justified=BY_RESTART,
        long=True,
    ),
    Fault(
        "the operator is killed at each step of a rollout in place",
        harm.kill_at_each_step_of_a_rollout_in_place,
        long=True,
    ),
    Fault(
        "the operator is killed at each step of a rollout without a spare GPU",
        harm.kill_at_each_step_of_a_rollout_without_a_spare_gpu,
        long=True,
    ),
    Fault(
        "the operator is killed at each step of a trial that passes",
        harm.kill_at_each_step_of_a_trial_that_passes,
        long=True,
    ),
    Fault(
        "the operator is killed at each step of a trial that fails",
        harm.kill_at_each_step_of_a_trial,
    ),
    Fault(
        "the operator is cut off longer than its Lease lasts", harm.cut_the_operator_off, long=True
    ),
    Fault(
        "the operator is cut off for a minute, during a rollout",
        harm.cut_the_operator_off_for_a_minute,
        long=True,
    ),
    Fault(
        "events come late and twice during a rollout", harm.deliver_events_late_and_twice, long=True
    ),
    Fault("watches get 410 after etcd was compacted", harm.let_watches_get_410),
    Fault("the API server starts again", harm.restart_the_api_server, long=True),
    Fault("the kubelet stands still and a pod is deleted", harm.stop_the_kubelet),
    Fault(
        "the kubelet stands still during a rollout",
        harm.stop_the_kubelet_during_a_rollout,
        long=True,
    ),
    Fault("devices fail and a pod is deleted", harm.let_devices_fail),
    Fault("an engine is killed", harm.kill_an_engine, cut=True),
    Fault("a pod is deleted", harm.delete_a_pod, long=True),
    Fault("the pages are garbage", harm.fill_the_pages_with_garbage, long=True),
    Fault("the counters start at zero again", harm.reset_the_counters, long=True),
    Fault("children are deleted", harm.delete_children, cut=True),
    Fault("the memory is deleted unseen", harm.delete_the_memory_while_no_operator_runs),
    Fault("the Deployment is deleted", harm.delete_the_deployment, outage=True, long=True),
    Fault("somebody else writes the same fields", harm.write_against_the_operator, cut=True),
)
