"""The ServiceAccount of a model's pods: it has no rights, and no token is mounted."""

from __future__ import annotations

from speculative_operator.api.runtime import RuntimeSpec
from speculative_operator.plan.names import Owner, model_names
from speculative_operator.resources.metadata import Manifest, metadata


def service_account(owner: Owner, runtime: RuntimeSpec) -> Manifest | None:
    """None where the user names an account of their own."""
    if runtime.service_account_name is not None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(owner, model_names(owner).service_account, "engine"),
        "automountServiceAccountToken": False,
    }
