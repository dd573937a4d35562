"""Metadata of every child: name, labels, and the owner reference that deletes it with its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speculative_operator.api.base import GROUP, KIND, VERSION
from speculative_operator.api.names import (
    APP_NAME,
    FIELD_MANAGER,
    LABEL_APP_COMPONENT,
    LABEL_APP_INSTANCE,
    LABEL_APP_NAME,
    LABEL_MANAGED_BY,
    LABEL_MODEL,
    LABEL_MODEL_UID,
    LABEL_REVISION,
    LABEL_SERVING,
)
from speculative_operator.plan.names import Owner, label_value

Manifest = dict[str, Any]
"""An object as the API server takes it."""


def metadata(owner: Owner, name: str, component: str, *, revision: str | None = None) -> Manifest:
    """Metadata of a child. `revision` is the key, for children that each revision has."""
    return {
        "name": name,
        "namespace": owner.namespace,
        "labels": labels(owner, component, revision=revision),
        "ownerReferences": [
            {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KIND,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }


def labels(owner: Owner, component: str, *, revision: str | None = None) -> dict[str, str]:
    """Labels of a child. None comes from the user's object: its labels are the user's own."""
    return {
        LABEL_APP_NAME: APP_NAME,
        LABEL_APP_INSTANCE: label_value(owner.name),
        LABEL_APP_COMPONENT: component,
        LABEL_MANAGED_BY: FIELD_MANAGER,
        LABEL_MODEL: label_value(owner.name),
        LABEL_MODEL_UID: owner.uid,
        **({} if revision is None else {LABEL_REVISION: revision}),
    }


def pods_of(owner: Owner) -> Mapping[str, str]:
    """Selects the pods of all revisions."""
    return {LABEL_MODEL_UID: owner.uid, LABEL_APP_COMPONENT: "engine"}


def pods_of_revision(owner: Owner, key: str) -> Mapping[str, str]:
    """Selects the pods of one revision."""
    return {LABEL_MODEL_UID: owner.uid, LABEL_REVISION: key}


def serving_pods_of(owner: Owner) -> Mapping[str, str]:
    """Selects the pods that may be sent requests."""
    return {LABEL_MODEL_UID: owner.uid, LABEL_SERVING: "true"}
