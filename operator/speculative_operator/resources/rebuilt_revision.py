"""A record that was lost, made anew from the Deployment that runs its revision.

The spec of today would render other images, so other pods. What the operator must know besides the
template is read off the engine's arguments, as `plan.arguments` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from speculative_operator.api.names import LABEL_APP_COMPONENT
from speculative_operator.api.speculation import Method
from speculative_operator.plan.facts import STARTUP_SPARE_SECONDS, RevisionFacts
from speculative_operator.plan.overlay import ENGINE
from speculative_operator.resources.metadata import Manifest

OLDEST = 0
"""The number of a rebuilt record: for which generation it was made is lost."""


def rebuilt_revision(deployment: Manifest) -> Manifest | None:
    """The ControllerRevision of a Deployment; None where the engine's arguments are not ours."""
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    deadline = deployment["spec"].get("progressDeadlineSeconds", STARTUP_SPARE_SECONDS)
    try:
        (engine,) = (c for c in template["spec"]["containers"] if c["name"] == ENGINE)
        facts = _facts(engine["args"], deadline - STARTUP_SPARE_SECONDS)
    except (LookupError, ValueError, TypeError, AttributeError):
        return None
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {**metadata.get("labels", {}), LABEL_APP_COMPONENT: "revision"},
            "ownerReferences": metadata["ownerReferences"],
        },
        "revision": OLDEST,
        "data": {"facts": facts.wire(), "template": template},
    }


def _facts(arguments: Sequence[str], startup_seconds: int) -> RevisionFacts:
    """Raises one of several errors for arguments that the operator has not written."""
    config = speculative_config(arguments)
    capacity = config.get("num_speculative_tokens", 0)
    rows = config.get("num_speculative_tokens_per_batch_size", ())
    lengths = {length for _, _, length in rows} or {capacity}
    return RevisionFacts(
        method=Method(config["method"]) if config else Method.NONE,
        schedule=bool(rows),
        capacity=capacity,
        initial=rows[0][2] if rows else capacity,
        choices=tuple(sorted(lengths - {0})),
        max_num_seqs=int(_values(arguments, "--max-num-seqs")[0]),
        served_names=tuple(_values(arguments, "--served-model-name")),
        startup_seconds=startup_seconds,
    )


def speculative_config(arguments: Sequence[str]) -> Mapping[str, Any]:
    """What `plan.arguments` made of `spec.speculation`; {} without speculation."""
    if "--speculative-config" not in arguments:
        return {}
    config: Mapping[str, Any] = json.loads(_values(arguments, "--speculative-config")[0])
    return config


def _values(arguments: Sequence[str], flag: str) -> list[str]:
    """What follows a flag up to the next one. The operator's flags stand before the user's."""
    after = arguments[arguments.index(flag) + 1 :]
    return list(takewhile(lambda value: not value.startswith("--"), after))
