"""Starts that a real vLLM does not survive: each has its class and what is done about it.

All are started at once, since each start takes about half a minute of a core.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import yaml

from local import model_volume, vllm_environment
from local.paths import CHECKOUT
from tests.e2e.conftest import Operator
from tests.support.api import KubernetesApi, Manifest, condition, is_true, until
from tests.support.models import QUICK_PROBES
from tests.support.served import Served, apply

pytestmark = pytest.mark.timeout(420)

FAIL = {"fallback": {"onStartFailure": "Fail"}}
NO_FOLDER = "no-such-model"

STARTS: dict[str, dict[str, Any]] = {
    "foreign-draft": {
        "speculation": {
            "method": "draft_model",
            "draft": {"source": "pvc://tiny-models/draft-badvocab"},
            "proposalLength": {"capacity": 4},
        }
    },
    "too-long": {
        "speculation": {
            "method": "dflash",
            "draft": {"source": "pvc://tiny-models/dflash-head"},
            "proposalLength": {"capacity": 8, "choices": [8]},
        },
        "runtime": {"args": ["--enforce-eager", "--max-num-batched-tokens=8"]},
        "tuning": FAIL,
    },
    "no-folder": {"model": {"source": f"pvc://tiny-models/{NO_FOLDER}"}, "tuning": FAIL},
    "too-little": {
        "runtime": {
            "resources": {"requests": {"memory": "128Mi"}, "limits": {"memory": "128Mi"}},
            "sharedMemory": "16Mi",
        },
        "tuning": FAIL,
    },
}


@pytest.fixture(scope="module")
def started(api: KubernetesApi, place: str, operator: Operator) -> Iterator[dict[str, Served]]:
    """The local example, wrong in one way each."""
    del operator
    for manifest in model_volume.manifests(place):
        api.apply(manifest, place)
    yield {name: apply(api, place, _example(name, wrong)) for name, wrong in STARTS.items()}
    with suppress(OSError):  # the kubelet may have made it
        (vllm_environment.folder() / "models" / NO_FOLDER).rmdir()


def test_a_missing_folder_is_told_by_the_field_that_names_it(started: dict[str, Served]) -> None:
    """It is tried again: a volume may still be being filled."""
    model = started["no-folder"]
    found = _told(model, "ModelUnavailable")

    assert "spec.model.source" in condition(found, "Ready")["message"]
    assert not is_true(found, "Stalled")
    model.api.delete("SpeculativeModel", model.namespace, model.name)


def test_a_proposal_that_the_engine_refuses_frees_its_gpu(started: dict[str, Served]) -> None:
    """The same at each start, so one is enough."""
    model = started["too-long"]
    found = _told(model, "ConfigurationRefused")

    assert "proposalLength.capacity" in condition(found, "Ready")["message"]
    assert "speculative decoding settings" in condition(found, "Ready")["message"]
    _given_up(model)


def test_a_memory_limit_that_is_too_small_is_named(started: dict[str, Served]) -> None:
    """The kernel ends it without a word of its own."""
    model = started["too-little"]
    found = _told(model, "OutOfMemory")

    assert "limits.memory" in condition(found, "Ready")["message"]
    _given_up(model)


def test_a_foreign_draft_is_done_without(started: dict[str, Served]) -> None:
    """The target runs, and answers."""
    model = started["foreign-draft"]
    found = model.wait("it serves all the same", lambda found: is_true(found, "Ready"), timeout=240)
    healthy = condition(found, "SpeculationHealthy")

    assert (healthy["status"], healthy["reason"]) == ("False", "SpeculationFails")
    assert "vocab_size=576" in healthy["message"]
    assert condition(found, "Stalled")["reason"] == "DraftDoesNotFit"
    assert model.complete("the quick brown fox", tokens=8)


def _told(model: Served, reason: str) -> Manifest:
    return model.wait(
        f"{model.name} is told",
        lambda found: condition(found, "Ready").get("reason") == reason,
        timeout=240,
    )


def _given_up(model: Served) -> None:
    model.wait("it is given up", lambda found: is_true(found, "Stalled"), timeout=120)
    until("its GPU is free", lambda: not model.pods(), timeout=60)


def _example(name: str, wrong: dict[str, Any]) -> Manifest:
    """`examples/local.yaml` with sections replaced, and probed more often."""
    found: Manifest = yaml.safe_load((CHECKOUT / "examples" / "local.yaml").read_text())
    found["metadata"]["name"] = name
    spec = found["spec"]
    for section, value in wrong.items():
        spec[section] = value if section == "speculation" else {**spec.get(section, {}), **value}
    spec["runtime"]["podTemplate"] = QUICK_PROBES
    return found
