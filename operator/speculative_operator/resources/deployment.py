"""The Deployment of one revision. Its template is the recorded one and never changes."""

from __future__ import annotations

from speculative_operator.plan.facts import STARTUP_SPARE_SECONDS
from speculative_operator.plan.names import Owner, revision_names
from speculative_operator.resources.controller_revision import RecordedRevision
from speculative_operator.resources.metadata import Manifest, metadata, pods_of_revision


def deployment(owner: Owner, revision: RecordedRevision, replicas: int) -> Manifest:
    """Runs `replicas` pods of `revision`.

    The strategy never surges: if somebody edits the template and the operator puts it back, the
    pods are replaced where they stand, since there may be no spare GPU.
    """
    name = revision_names(owner, revision.key).deployment
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(owner, name, "engine", revision=revision.key),
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": revision.facts.startup_seconds + STARTUP_SPARE_SECONDS,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "selector": {"matchLabels": dict(pods_of_revision(owner, revision.key))},
            "template": revision.template,
        },
    }
