"""A model and its memory as the cluster has them, read with the user's own rights."""

from __future__ import annotations

from http import HTTPStatus

from speculative_operator.api.status import ModelStatus
from speculative_operator.cli.options import Options
from speculative_operator.cli.source import Found, NothingKnown, record_of, why_nothing
from speculative_operator.cluster.client import Client, Refused
from speculative_operator.cluster.connection import load_as_user
from speculative_operator.cluster.manifests import MODEL, RESOURCES, Manifest, Reference
from speculative_operator.errors import ClusterFault
from speculative_operator.plan.names import Owner, model_names


async def find(options: Options) -> Found:
    """Raises OperatorError with what is wrong and what to do."""
    configuration, namespace = await load_as_user(options.kubeconfig, options.context)
    async with Client(configuration) as client:
        return await from_cluster(client, options.namespace or namespace, options.name)


async def from_cluster(client: Client, namespace: str, name: str) -> Found:
    """The model's status and its memory. Without the right to read the memory, the status alone."""
    title = f"{namespace}/{name}"
    model = await _read(client, Reference(MODEL.kind, namespace, name))
    if model is None:
        raise NothingKnown(
            f"there is no SpeculativeModel {name} in namespace {namespace}: "
            f"`kubectl get spm -n {namespace}` lists those that there are"
        )
    status = ModelStatus.read(model.get("status", {}))
    owner = Owner(name, namespace, model["metadata"]["uid"])
    memory = Reference("ConfigMap", namespace, model_names(owner).memory)
    try:
        config_map = await _read(client, memory)
    except ClusterFault as fault:
        return Found(title, status, None, str(fault))
    record = record_of(config_map or {})
    gap = "" if record else f"{memory}: {why_nothing(config_map or {})}"
    return Found(title, status, record, gap)


async def _read(client: Client, reference: Reference) -> Manifest | None:
    """One object; a refusal names the right that is missing."""
    try:
        return await client.read(reference)
    except Refused as refusal:
        if refusal.status != HTTPStatus.FORBIDDEN:
            raise
        resource = RESOURCES[reference.kind]
        where = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        raise ClusterFault(
            f"no permission to read {reference}: ask for the verb get on the resource {where} "
            f"in namespace {reference.namespace}"
        ) from refusal
