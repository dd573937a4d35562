"""Off speculation by a rollout and back, with an operator that dies in the middle.

What the tuner wants is put into its memory as an operator before would have left it there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence

import pytest

from speculative_operator.api.names import LABEL_REVISION
from speculative_operator.tuning.memory import Memory, to_data
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Restart, Variant
from tests.support.api import Manifest, condition, until
from tests.support.nodeless import Engine, Place, engine, make_ready
from tests.support.operator_process import OperatorProcess

FALLBACK = {"fallback": {"level": "Restart"}}


@pytest.fixture
def running(qwen: Place) -> Iterator[Engine]:
    """An engine that stands in for all pods of the model."""
    with engine(qwen.name) as made:
        yield made


def remember(qwen: Place, key: str, variant: Variant) -> None:
    """What an operator has decided and saved before it died."""
    state = State(restart=Restart(variant=variant, since=0.0, arrived=True))
    data = to_data(Memory(revisions={key: state}, written_at=1.0))
    binary = {name: base64.b64encode(each).decode() for name, each in data.binary_data.items()}
    change = {"data": dict(data.data), "binaryData": binary}
    qwen.api.merge("ConfigMap", qwen.namespace, f"{qwen.name}-tuning", change)


def start(qwen: Place, running: Engine) -> str:
    """Two replicas that speculate; the key of their revision."""
    qwen.create(replicas=2, tuning=FALLBACK)
    for pod in qwen.pods(2):
        make_ready(qwen.api, pod, running.address)
    qwen.wait("Ready", "True")
    return qwen.current()


def revisions(pods: Sequence[Manifest]) -> list[str]:
    """Of pods."""
    return [str(pod["metadata"]["labels"][LABEL_REVISION]) for pod in pods]


def until_ready(
    what: str, qwen: Place, running: Engine, holds: Callable[[Sequence[str]], bool]
) -> None:
    """Makes pods Ready as they come, until the revisions of the pods are so: the rollout waits for
    that, so no step of it is missed."""

    def step() -> bool:
        pods = qwen.alive()
        if holds(revisions(pods)):
            return True
        for pod in pods:
            if not _is_ready(pod):
                make_ready(qwen.api, pod, running.address)
        return False

    until(what, step)


def roll(qwen: Place, running: Engine, until_gone: str, left: int) -> None:
    """Goes on until so many pods of one revision are left."""

    def holds(now: Sequence[str]) -> bool:
        return now.count(until_gone) == left

    until_ready(f"{left} pods of {until_gone} are left", qwen, running, holds)


def settle(qwen: Place, running: Engine, left: str) -> None:
    """Goes on until status tells that another revision than the one that was left runs."""

    def holds(now: Sequence[str]) -> bool:
        model = qwen.read()
        return (
            left not in now
            and model["status"]["revisions"]["current"] != left
            and condition(model, "Progressing").get("reason") == "Settled"
        )

    until_ready("another revision is settled", qwen, running, holds)


def _is_ready(pod: Manifest) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def test_an_operator_that_dies_midway_changes_nothing_about_where_it_goes(
    qwen: Place, running: Engine, operator: OperatorProcess
) -> None:
    """Decided once, saved, and carried on by the next one, without a step back."""
    speculative = start(qwen, running)
    operator.kill()
    remember(qwen, speculative, Variant.AUTOREGRESSIVE)
    operator.start()
    roll(qwen, running, speculative, left=1)

    operator.kill()
    operator.start()
    seen = set()

    def holds(now: Sequence[str]) -> bool:
        seen.add(now.count(speculative))
        return speculative not in now and len(now) == 2

    until_ready("no pod speculates", qwen, running, holds)
    settle(qwen, running, speculative)
    qwen.wait("Ready", "True")

    assert max(seen) <= 1
    status = qwen.read()["status"]
    assert status["mode"] == "Autoregressive"
    assert status["revisions"]["current"] == status["revisions"]["lastGood"] != speculative
    assert not _speculates(qwen.alive()[0])


def test_withdrawn_leave_brings_the_recorded_speculative_revision_back(
    qwen: Place, running: Engine, operator: OperatorProcess
) -> None:
    """The user's word; with the pods as they were recorded, whatever the operator renders now."""
    speculative = start(qwen, running)
    template = _template(qwen, speculative)
    operator.kill()
    remember(qwen, speculative, Variant.AUTOREGRESSIVE)
    operator.start()
    roll(qwen, running, speculative, left=0)
    settle(qwen, running, speculative)

    autoregressive = qwen.current()
    qwen.edit(tuning={"fallback": {"level": "Live"}})
    settle(qwen, running, autoregressive)

    assert _template(qwen, speculative) == template
    assert all(_speculates(pod) for pod in qwen.alive())
    assert qwen.read()["status"]["mode"] == "Speculative"


def test_a_new_spec_starts_with_speculation(
    qwen: Place, running: Engine, operator: OperatorProcess
) -> None:
    """What was decided was decided of another revision."""
    speculative = start(qwen, running)
    operator.kill()
    remember(qwen, speculative, Variant.AUTOREGRESSIVE)
    operator.start()
    roll(qwen, running, speculative, left=0)
    settle(qwen, running, speculative)
    old = qwen.current()

    qwen.edit(model={"maxModelLen": 4096})
    new = qwen.current()
    roll(qwen, running, old, left=0)

    assert new not in (old, speculative)
    assert set(revisions(qwen.alive())) == {new}
    assert all(_speculates(pod) for pod in qwen.alive())


def _speculates(pod: Manifest) -> bool:
    return "--speculative-config" in pod["spec"]["containers"][0]["args"]


def _template(qwen: Place, key: str) -> Manifest:
    record = qwen.api.get("ControllerRevision", qwen.namespace, f"{qwen.name}-{key}")
    assert record is not None
    template: Manifest = record["data"]["template"]
    return template
