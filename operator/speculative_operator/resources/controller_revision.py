"""A revision written down: the pod template as it was rendered, and the facts about it.

The API server keeps the data of a ControllerRevision unchangeable. Pods are compared with this
record, so a new operator or plugin image rolls nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from speculative_operator.api.names import LABEL_REVISION
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.plan.model import EnginePlan
from speculative_operator.plan.names import revision_names
from speculative_operator.resources.metadata import Manifest, metadata
from speculative_operator.resources.pod_template import pod_template


@dataclass(frozen=True)
class RecordedRevision:
    """A revision as read back from its ControllerRevision."""

    key: str
    facts: RevisionFacts
    template: Mapping[str, Any]


def controller_revision(plan: EnginePlan) -> Manifest:
    """Records `plan`. Raises ModelInvalid for an overlay of a wrong shape."""
    name = revision_names(plan.owner, plan.key).controller_revision
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata(plan.owner, name, "revision", revision=plan.key),
        "revision": plan.generation,
        "data": {"facts": plan.facts.wire(), "template": pod_template(plan)},
    }


def recorded(manifest: Mapping[str, Any]) -> RecordedRevision:
    """Reads a ControllerRevision that `controller_revision` made, by this or an older operator."""
    data = manifest["data"]
    return RecordedRevision(
        key=manifest["metadata"]["labels"][LABEL_REVISION],
        facts=RevisionFacts.model_validate(data["facts"]),
        template=data["template"],
    )
