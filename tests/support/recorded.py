"""A model as the cluster has it after some minutes of traffic, played in virtual time."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local.simulated_engine.assembly import choose_group
from local.virtual_time.clock import EPOCH
from local.virtual_time.scene import Scene, play, policy_for
from speculative_operator.api.conditions import ConditionType
from speculative_operator.api.status import Condition, ModelStatus
from speculative_operator.controller.said.tuning_status import tuning_part
from speculative_operator.controller.tuner.ports import TuningView
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.resources.controller_revision import RecordedRevision
from speculative_operator.tuning.memory import MemoryData
from speculative_operator.tuning.policy import Policy

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")
"""Best at K=6 or 5 with 16 requests; speculation pays 1.6 times."""

END = EPOCH + 600
"""Unix time at the end of the play."""


@dataclass(frozen=True)
class RecordedModel:
    """Its manifest, and that of its memory."""

    model: dict[str, Any]
    memory: dict[str, Any]


def a_recorded_model(folder: Path, **changes: Any) -> RecordedModel:
    """Ten minutes: 16 requests at once, then 4, then 48. `changes` are of the policy."""
    policy = replace(policy_for(GROUP), **changes)
    scene = Scene(GROUP, folder, policy=policy)

    async def script(scene: Scene) -> None:
        for clients in (16, 4, 48):
            scene.send(clients)
            await scene.pass_seconds(200)

    play(scene, script)
    (data,) = scene.memories.kept.values()
    return RecordedModel(_model(scene.view, policy), config_map(data))


def config_map(data: MemoryData) -> dict[str, Any]:
    """The memory as the API server gives it."""
    packed = {key: base64.b64encode(value).decode() for key, value in data.binary_data.items()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "qwen-tuning", "namespace": "prod"},
        "data": dict(data.data),
        "binaryData": packed,
    }


def _model(view: TuningView, policy: Policy) -> dict[str, Any]:
    facts = RevisionFacts(
        method=GROUP.method,
        schedule=True,
        capacity=7,
        initial=7,
        choices=policy.choices,
        max_num_seqs=policy.max_num_seqs,
        served_names=("qwen",),
        startup_seconds=600,
    )
    revision = RecordedRevision(view.key, facts, template={})
    part = tuning_part(revision, view.key, policy, view, None)
    status = ModelStatus(
        observed_generation=1,
        mode=part.mode,
        proposal_length=part.proposal_length,
        schedule=part.schedule,
        evidence=part.evidence,
        decisions=part.decisions,
        conditions=tuple(_condition(kind, part.verdicts[kind]) for kind in part.verdicts),
    )
    return {
        "apiVersion": "speculation.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": "qwen", "namespace": "prod", "uid": "uid"},
        "status": status.wire(),
    }


def _condition(kind: ConditionType, verdict: Any) -> Condition:
    return Condition(
        type=kind,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message,
        observed_generation=1,
        last_transition_time="2027-01-15T08:00:00Z",
    )
