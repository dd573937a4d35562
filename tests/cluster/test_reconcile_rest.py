"""An operator that has nothing to do does nothing: at rest, after a restart, after an upgrade."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from speculative_operator.api.names import LABEL_MODEL_UID
from tests.support.api import until
from tests.support.nodeless import Engine, Place, engine, make_ready
from tests.support.operator_process import OperatorProcess

WATCHED_SECONDS = 10.0
REQUEST = re.compile(
    r'^speculative_operator_api_requests_total\{kind="(\w+)",method="(\w+)",status="\d+"\} (\S+)$',
    re.MULTILINE,
)


@pytest.fixture
def served(qwen: Place) -> Iterator[Engine]:
    """The model is Ready and its status has settled."""
    qwen.create(replicas=2)
    with engine(qwen.name) as running:
        for pod in qwen.pods(2):
            make_ready(qwen.api, pod, running.address)
        qwen.wait("Ready", "True")
        qwen.wait("Progressing", "False")
        _settle(qwen)
        yield running


def _settle(qwen: Place) -> None:
    """Until nothing was written for three seconds: the tuner's first words come on their own."""
    last = ("", time.monotonic())

    def quiet() -> bool | None:
        nonlocal last
        now = str(state(qwen))
        if now != last[0]:
            last = (now, time.monotonic())
        return time.monotonic() - last[1] > 3 or None

    until("the status has settled", quiet)


def state(qwen: Place) -> dict[str, str]:
    """The version of the model, its pods and all that belongs to it."""
    uid = qwen.read()["metadata"]["uid"]
    pods = qwen.api.all("Pod", qwen.namespace, f"{LABEL_MODEL_UID}={uid}")
    objects = [qwen.read(), *qwen.children().values(), *pods]
    return {
        f"{found.get('kind', '')} {found['metadata']['name']} {found['metadata']['uid']}": found[
            "metadata"
        ]["resourceVersion"]
        for found in objects
    }


def writes(operator: OperatorProcess) -> dict[tuple[str, str], float]:
    """Writes since the operator's start by (kind, method); its Lease and Events left out."""
    found: dict[tuple[str, str], float] = {}
    for kind, method, count in REQUEST.findall(operator.page("/metrics")):
        if method != "GET" and kind not in ("Lease", "Event"):
            found[kind, method] = found.get((kind, method), 0) + float(count)
    return found


def passes(operator: OperatorProcess) -> float:
    """How often a model was looked at."""
    name = "speculative_operator_reconcile_seconds_count"
    counts = re.findall(rf"^{name}{{.*}} (\S+)$", operator.page("/metrics"), re.MULTILINE)
    return sum(float(count) for count in counts)


def test_at_rest_nothing_is_written(qwen: Place, served: Engine, operator: OperatorProcess) -> None:
    """A status that is rewritten by itself costs the API server 6,000 writes a minute elsewhere."""
    before, written = state(qwen), writes(operator)

    time.sleep(WATCHED_SECONDS)

    assert writes(operator) == written
    assert state(qwen) == before


def test_after_a_restart_nothing_is_written(
    qwen: Place, served: Engine, operator: OperatorProcess
) -> None:
    """All that a pass compares with stands in the cluster."""
    before = state(qwen)
    operator.kill()
    operator.start()
    until("the model was looked at", lambda: passes(operator) >= 1 or None)

    time.sleep(WATCHED_SECONDS)

    assert writes(operator) == {}
    assert state(qwen) == before


def test_new_images_of_the_operator_roll_nothing(
    qwen: Place, served: Engine, operator: OperatorProcess
) -> None:
    """Pods are compared with the template that was recorded, not with today's."""
    before = state(qwen)
    old = operator.engine_image, operator.plugin_image
    operator.stop()
    operator.engine_image, operator.plugin_image = "example/engine:2", "example/plugin:2"
    operator.start()
    until("the model was looked at", lambda: passes(operator) >= 1 or None)

    time.sleep(WATCHED_SECONDS / 2)
    after = state(qwen)

    operator.stop()
    operator.engine_image, operator.plugin_image = old
    operator.start()
    assert after == before


def test_a_restored_child_is_written_once(
    qwen: Place, served: Engine, operator: OperatorProcess
) -> None:
    """A repair that does not see its own effect repairs for ever."""
    written = writes(operator)
    qwen.api.merge(
        "Service", qwen.namespace, qwen.name, {"spec": {"ports": [{"port": 80, "targetPort": 1}]}}
    )
    until(
        "the port is back",
        lambda: qwen.child("Service")["spec"]["ports"][0]["targetPort"] == "http" or None,
    )

    time.sleep(WATCHED_SECONDS / 2)

    after = writes(operator)
    assert {key: after[key] - written.get(key, 0) for key in after} == {
        **dict.fromkeys(after, 0),
        ("Service", "PATCH"): 1,
    }


def test_a_told_operator_ends_well(qwen: Place, served: Engine, operator: OperatorProcess) -> None:
    """Within the pod's grace, with its Lease given back, so that the next one leads at once."""
    assert operator.stop() == 0

    operator.start()
    qwen.edit(replicas=3)
    qwen.pods(3)
