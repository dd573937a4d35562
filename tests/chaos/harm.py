"""The harm that is done to the stage. Each function returns how often it did it."""

from __future__ import annotations

import json
from collections.abc import Callable

from local import devices
from local.simulated_engine.world import PageFault
from tests.chaos.stage import Stage
from tests.support.api import Manifest, condition, until
from tests.support.gate import PROMPT, Events
from tests.support.traffic import traffic

# The operator.


def kill_the_operator(stage: Stage) -> int:
    for _ in range(3):
        stage.operator.kill_and_wait()
    return 3


def kill_at_each_step_of_a_rollout(stage: Stage) -> int:
    before = stage.operator.killed
    with stage.operator.dying_after_each_write():
        stage.new_spec()
        stage.until_settled()
    return stage.operator.killed - before


def kill_at_each_step_of_a_rollout_in_place(stage: Stage) -> int:
    with stage.rolled({"strategy": "InPlace"}):
        return kill_at_each_step_of_a_rollout(stage)


def kill_at_each_step_of_a_rollout_without_a_spare_gpu(stage: Stage) -> int:
    """One pod more is tried, finds no GPU and is taken back; then it goes in place."""
    with stage.only_gpus(2), stage.rolled({"strategy": "Auto", "surgeTimeoutSeconds": 2}):
        return kill_at_each_step_of_a_rollout(stage)


def kill_at_each_step_of_a_trial_that_passes(stage: Stage) -> int:
    """Output and speed are compared, so it takes some seconds under traffic."""
    with stage.rolled({"strategy": "Auto", "trial": {"mode": "Auto", "timeoutSeconds": 30}}):
        return kill_at_each_step_of_a_rollout(stage)


def kill_at_each_step_of_a_fallback_by_restart(stage: Stage) -> int:
    """Off speculation by a rollout, but for a sensor, and back; with many clients more, since at
    small batches engines without speculation bring too little."""
    before = stage.operator.killed
    stage.served.change({"tuning": {"fallback": {"level": "Restart", "sensor": True}}})
    stage.owe(1e6)
    crowd = traffic(stage.served.url(), stage.served.name, 92, 48)
    with crowd as report, stage.operator.dying_after_each_write():
        stage.world(speculation_cost=3.0)
        stage.served.wait("it is restarted", _mode("Autoregressive"), timeout=240)
        stage.until_settled()
        stage.world(speculation_cost=0.3)
        stage.ask_for_a_look()
        stage.served.wait("it speculates again", _mode("Speculative"), timeout=240)
        stage.until_settled()
    assert report.failed == 0, report.failures
    stage.world(speculation_cost=1.0)
    stage.served.change({"tuning": {"fallback": None}})
    return stage.operator.killed - before


def kill_at_each_step_of_a_fallback(stage: Stage) -> int:
    before = stage.operator.killed
    with stage.operator.dying_after_each_write():
        stage.world(acceptance=0.02)
        stage.served.wait("it falls back", _mode("Fallback"), timeout=180)
        stage.world(acceptance=1.0)
        stage.ask_for_a_look()
        stage.served.wait("it speculates again", _mode("Speculative"), timeout=180)
    return stage.operator.killed - before


def kill_at_each_step_of_a_trial(stage: Stage) -> int:
    """Of a revision with another model's output, which has to go again."""
    before, env = stage.operator.killed, stage.served.resource()["spec"]["runtime"]["env"]
    another = {"name": "SIMULATED_WORLD", "value": json.dumps({"speaker": "another model"})}
    with stage.operator.dying_after_each_write():
        stage.served.change({"rollout": {"trial": {"mode": "Auto"}}})
        stage.served.change({"runtime": {"env": [*env, another]}})
        stage.served.wait("it is rolled back", _progressing("OutputDiffers"), timeout=180)
    stage.served.change({"rollout": {"trial": {"mode": "Off"}}, "runtime": {"env": env}})
    return stage.operator.killed - before


def cut_the_operator_off(stage: Stage) -> int:
    """Longer than it may go on without having renewed its Lease; meanwhile the user edits."""
    with stage.cut_off():
        stage.small_edit()
        stage.sit(25)
    return 1


def cut_the_operator_off_for_a_minute(stage: Stage) -> int:
    """In the middle of a rollout."""
    stage.new_spec()
    stage.served.wait("it rolls", _progressing("RollingOut"))
    with stage.cut_off():
        stage.sit(60)
    return 1


def deliver_events_late_and_twice(stage: Stage) -> int:
    """During a rollout, when most depends on them."""
    stage.gate.events = Events(late=0.2, times=2)
    try:
        stage.new_spec()
        stage.until_settled()
    finally:
        stage.gate.events = PROMPT
    return 1


def let_watches_get_410(stage: Stage) -> int:
    """What the operator has not seen yet is not kept any more by the time that it asks; and what
    was deleted meanwhile, no list tells of."""
    expired = stage.gate.expired
    with stage.cut_off():
        stage.small_edit()
        stage.api.delete("ConfigMap", stage.served.namespace, f"{stage.served.name}-tuning")
        stage.compact()
        stage.restart_api_server()
    until("a watch gets 410", lambda: stage.gate.expired > expired)
    return stage.gate.expired - expired


# The control plane and the node.


def restart_the_api_server(stage: Stage) -> int:
    stage.restart_api_server()
    return 1


def stop_the_kubelet(stage: Stage) -> int:
    """Shorter than the 40 s after which the control plane gives its pods up; meanwhile one pod is
    to go, and nobody stops it."""
    with stage.stopped("kubelet"):
        delete_a_pod(stage)
        stage.sit(5)
    return 1


def stop_the_kubelet_during_a_rollout(stage: Stage) -> int:
    with stage.stopped("kubelet"):
        stage.new_spec()
        stage.sit(20)
    return 1


def let_devices_fail(stage: Stage) -> int:
    """All but two of them; and one pod goes, which has to find another device."""
    ids = devices.read().ids
    devices.mark_unhealthy(*ids[:4])
    try:
        name = stage.served.pods()[0]["metadata"]["name"]
        stage.api.delete("Pod", stage.served.namespace, name)
        until("another pod has come", lambda: name not in _names(stage.served.pods()))
        stage.healed()
    finally:
        devices.mark_healthy()
    return 4


# The engines.


def kill_an_engine(stage: Stage) -> int:
    """Its container starts again."""
    pod = stage.served.pods()[0]
    name, before = pod["metadata"]["name"], _restarts(pod)
    stage.served.world(address=pod["status"]["podIP"], crash="killed by a test")
    until(
        "its container has started again",
        lambda: any(
            _restarts(found) > before
            for found in stage.served.pods()
            if found["metadata"]["name"] == name
        ),
    )
    return 1


def delete_a_pod(stage: Stage) -> int:
    """It leaves the Service before it stops, and finishes what it runs."""
    stage.api.delete("Pod", stage.served.namespace, stage.served.pods()[0]["metadata"]["name"])
    return 1


def fill_the_pages_with_garbage(stage: Stage) -> int:
    """All engines at once, so that nothing at all is known of them."""
    kinds = (PageFault.TRUNCATED, PageFault.UNREACHABLE)
    for fault in kinds:
        stage.world(page=fault)
        blind = stage.served.wait(f"{fault} pages are told", _unreadable)
        stage.sit(3)
        assert stage.served.status()["decisions"] == blind["status"]["decisions"]
        stage.world(page=PageFault.NONE)
        stage.served.wait("the pages are read again", lambda found: not _unreadable(found))
    return len(kinds)


def reset_the_counters(stage: Stage) -> int:
    """And what is counted from then on is evidence again."""
    stage.world(page=PageFault.RESET)
    stage.until_measured_anew()
    return 1


# What the operator made.


def delete_children(stage: Stage) -> int:
    """All but the Deployment, each from under the running pods."""
    name, key = stage.served.name, stage.served.status()["revisions"]["current"]
    children = (
        ("Service", name),
        ("ConfigMap", f"{name}-tuning"),
        ("ConfigMap", f"{name}-{key}-schedule"),
        ("ControllerRevision", f"{name}-{key}"),
    )
    for kind, child in children:
        stage.api.delete(kind, stage.served.namespace, child)
    for kind, child in children:
        until(
            f"{kind} {child} is back",
            lambda kind=kind, child=child: stage.api.get(kind, stage.served.namespace, child),  # type: ignore[misc]
        )
    return len(children)


def delete_the_memory_while_no_operator_runs(stage: Stage) -> int:
    """What was learned is gone, and nobody has seen it go."""
    with stage.operator.away():
        stage.api.delete("ConfigMap", stage.served.namespace, f"{stage.served.name}-tuning")
    return 1


def delete_the_deployment(stage: Stage) -> int:
    """With all pods: nothing serves before new ones have started."""
    name, key = stage.served.name, stage.served.status()["revisions"]["current"]
    gone = _names(stage.served.pods())
    stage.api.delete("Deployment", stage.served.namespace, f"{name}-{key}")
    until("the pods are gone", lambda: not gone & _names(stage.served.pods()))
    return 1


def write_against_the_operator(stage: Stage) -> int:
    """Somebody else takes the same fields, more slowly than would be a fight."""
    name, key = stage.served.name, stage.served.status()["revisions"]["current"]
    namespace = stage.served.namespace
    wrong_status = {"status": {"readyReplicas": 7, "mode": "Fallback"}}
    path = stage.api.path("SpeculativeModel", namespace, name)
    selector = {"spec": {"selector": {"speculation.dev/serving": "wrong"}}}
    for number in range(2):
        stage.api.merge("Service", namespace, name, selector)
        stage.api.merge("Deployment", namespace, f"{name}-{key}", {"spec": {"replicas": 3}})
        text = {"data": {"schedule.json": f"broken {number}"}}
        stage.api.merge("ConfigMap", namespace, f"{name}-{key}-schedule", text)
        stage.api.call("PATCH", f"{path}/status", wrong_status, "application/merge-patch+json")
        stage.healed()
    return 8


def _mode(wanted: str) -> Callable[[Manifest], bool]:
    return lambda found: bool(found["status"].get("mode") == wanted)


def _progressing(wanted: str) -> Callable[[Manifest], bool]:
    return lambda found: bool(condition(found, "Progressing").get("reason") == wanted)


def _unreadable(found: Manifest) -> bool:
    reason = condition(found, "Tuned").get("reason")
    return reason in ("MetricsInvalid", "MetricsUnreachable")


def _restarts(pod: Manifest) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


def _names(pods: list[Manifest]) -> set[str]:
    return {str(pod["metadata"]["name"]) for pod in pods}
