"""The Service of a model: reaches every ready pod that serves, whatever its revision."""

from __future__ import annotations

from speculative_operator.api.exposure import ServiceSpec
from speculative_operator.api.names import PORT_HTTP
from speculative_operator.plan.names import Owner, model_names
from speculative_operator.resources.metadata import Manifest, metadata, serving_pods_of


def service(owner: Owner, spec: ServiceSpec) -> Manifest:
    """Requests go to `spec.port`. The plugin's port is for the operator, pod by pod: not here."""
    common = metadata(owner, model_names(owner).service, "service")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **common,
            **({"annotations": dict(spec.annotations)} if spec.annotations else {}),
        },
        "spec": {
            "type": spec.type.value,
            "selector": dict(serving_pods_of(owner)),
            "ports": [
                {"name": PORT_HTTP, "port": spec.port, "targetPort": PORT_HTTP, "protocol": "TCP"}
            ],
        },
    }
