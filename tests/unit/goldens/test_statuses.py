"""What GitOps tools make of each status: kstatus (Flux, Helm) and Argo CD's health script."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.gitops import kstatus
from tests.support.lua import argo_health
from tests.unit.goldens.statuses import STATES, STATUSES, file_of, text_of
from tools.golden import CHECKOUT

ARGO_CD = CHECKOUT / "examples" / "gitops" / "argo-cd"
SCRIPT = ARGO_CD / "health.lua"

WAITS = ("InProgress", "Progressing")
DONE = ("Current", "Healthy")
FAILED = ("Failed", "Degraded")
PARKED = ("Current", "Suspended")

EXPECTED = {
    "unseen": WAITS,
    "edited": WAITS,
    "starting": WAITS,
    "waiting-for-gpus": WAITS,
    "ready": DONE,
    "tuned": DONE,
    "draft-is-faulty": DONE,
    "scaling-up": WAITS,
    "on-trial": WAITS,
    "rolling-out": WAITS,
    "tried-again": WAITS,
    "parking": WAITS,
    "parked": PARKED,
    "refused": FAILED,
    "refused-while-serving": FAILED,
    "unreadable": FAILED,
    "does-not-start": FAILED,
    "stands-in": FAILED,
    "rolled-back": FAILED,
    "rolling-back": FAILED,
    "stuck": FAILED,
    "would-be-down": FAILED,
}
"""State -> what kstatus says, what Argo CD says."""

SAME_WORDS = {
    "waiting-for-gpus": "1 Insufficient amd.com/gpu",
    "tried-again": "The hub does not answer",
    "refused": "spec.runtime.podTemplate.spec.hostNetwork",
    "refused-while-serving": "spec.runtime.podTemplate.spec.hostNetwork",
    "unreadable": "spec.speculation.metod",
    "does-not-start": "No pods are started",
    "stands-in": "It is served without speculation",
    "rolled-back": "Change what pods are started with",
    "stuck": "Nothing has moved for 600 s",
    "would-be-down": "rollout.allowDowntime: true",
}
"""State -> words that a user of either tool reads."""

every_state = pytest.mark.parametrize("name", EXPECTED)


def recorded(name: str) -> dict[str, Any]:
    """The model in a state."""
    found: dict[str, Any] = yaml.safe_load((STATUSES / f"{name}.yaml").read_text())
    return found


@pytest.mark.parametrize("state", STATES, ids=lambda state: file_of(state).stem)
def test_a_state_has_its_golden_status(state: Any) -> None:
    """A change of what users and tools read is seen in the commit: rewrite with `make golden`."""
    assert file_of(state).read_text() == text_of(state)


def test_every_golden_status_is_of_a_state_that_is_judged() -> None:
    """A state that is left out here would be judged by nobody."""
    assert {file.stem for file in STATUSES.glob("*.yaml")} == set(EXPECTED)
    assert {file_of(state).stem for state in STATES} == set(EXPECTED)


def test_kstatus_and_argo_cd_agree_on_every_state() -> None:
    """One tool must not wait for ever for what is done to the other, nor call it broken."""
    models = {name: recorded(name) for name in EXPECTED}
    by_kstatus = [found.status for found in kstatus(models.values())]
    by_argo_cd = [argo_health(SCRIPT, model).status for model in models.values()]

    found = dict(zip(models, zip(by_kstatus, by_argo_cd, strict=True), strict=True))
    assert found == EXPECTED


@pytest.mark.parametrize(("name", "words"), SAME_WORDS.items())
def test_a_user_of_either_tool_reads_why(name: str, words: str) -> None:
    """And what to write instead: that is what the messages are for."""
    (found,) = kstatus([recorded(name)])

    assert words in found.message
    assert words in argo_health(SCRIPT, recorded(name)).message


def test_a_model_with_a_faulty_draft_is_healthy_and_says_so() -> None:
    """It serves, without gain: no reason to stop a sync, and one to look."""
    found = argo_health(SCRIPT, recorded("draft-is-faulty"))

    assert "No draft token at all is accepted" in found.message


def test_a_model_without_any_status_is_waited_for() -> None:
    """By Argo CD, as it may be under a CRD of somebody else's; to kstatus it would be done, which
    is why the CRD has a status by default."""
    model = recorded("unseen")
    del model["status"]

    assert argo_health(SCRIPT, model).status == "Progressing"
    assert [found.status for found in kstatus([model])] == ["Current"]


def test_a_model_that_is_deleted_is_waited_for() -> None:
    """Its pods drain; Argo CD says `Progressing` of its own then."""
    model = recorded("ready")
    model["metadata"]["deletionTimestamp"] = "2026-08-23T10:00:00Z"

    assert [found.status for found in kstatus([model])] == ["Terminating"]


def test_the_script_to_be_pasted_is_the_script_that_is_tested() -> None:
    """Users copy the ConfigMap; Argo CD's chart takes the file."""
    config = yaml.safe_load((ARGO_CD / "argocd-cm.yaml").read_text())

    key = "resource.customizations.health.speculation.dev_SpeculativeModel"
    assert config["data"][key] == SCRIPT.read_text()
