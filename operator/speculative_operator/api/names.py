"""Labels, annotations and ports that more than one room writes or reads."""

from __future__ import annotations

from typing import Final

FIELD_MANAGER: Final = "speculative-operator"
"""The one field manager of every server-side apply, and `app.kubernetes.io/managed-by`."""

# Labels of children and pods.
LABEL_MODEL: Final = "speculation.dev/model"
"""Name of the SpeculativeModel; for people and dashboards, since a long name is shortened."""
LABEL_MODEL_UID: Final = "speculation.dev/model-uid"
"""UID of the SpeculativeModel: what selectors use. A re-created model never takes old pods over."""
LABEL_REVISION: Final = "speculation.dev/revision"
"""Key of the revision that a pod runs."""
LABEL_SERVING: Final = "speculation.dev/serving"
"""`"true"` on pods that the Service may send requests to, `"false"` while on trial."""
LABEL_APP_NAME: Final = "app.kubernetes.io/name"
LABEL_APP_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_APP_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"

APP_NAME: Final = "speculative-model"
"""Value of `app.kubernetes.io/name` on everything that belongs to a model."""

# Annotations that a user sets on the SpeculativeModel.
ANNOTATION_REFRESH: Final = "speculation.dev/refresh"
"""Any new value makes a new revision: a restart with the operator's settings of today."""
ANNOTATION_LOOK: Final = "speculation.dev/look"
"""Any new value asks for trials of all proposal lengths at once."""

# Annotations that the operator sets.
ANNOTATION_SCHEDULE: Final = "speculation.dev/schedule"
"""On a pod, `<hash>.<attempt>`: makes the kubelet hand the schedule on at once."""
ANNOTATION_VERDICT: Final = "speculation.dev/verdict"
"""On a ControllerRevision: `trial`, `good` or `bad: <Reason>`."""
ANNOTATION_VERDICT_TIME: Final = "speculation.dev/verdict-time"
ANNOTATION_VERDICT_MESSAGE: Final = "speculation.dev/verdict-message"
ANNOTATION_REFERENCE: Final = "speculation.dev/reference-output"
"""On the ControllerRevision of a revision on trial: what the running one answered before."""
ANNOTATION_VERDICT_LEAVE_OUT: Final = "speculation.dev/verdict-leave-out"
"""On the record of a bad revision: the option of speculation, or `speculation`, without which the
model may start."""
ANNOTATION_IN_PLACE: Final = "speculation.dev/in-place"
"""On a ControllerRevision while it is rolled out: why that goes in place."""

ANNOTATION_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Kubernetes' own, on a pod: of those that are ready a ReplicaSet ends the cheapest one first."""

# Ports of an engine's pod, by name.
PORT_HTTP: Final = "http"
PORT_HTTP_NUMBER: Final = 8000
PORT_SPECULATION: Final = "speculation"
PORT_SPECULATION_NUMBER: Final = 9405
