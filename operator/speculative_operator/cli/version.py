"""`kubectl speculation version`: this package's version beside the operator's.

The two read one format of memory as long as their versions are equal.
"""

from __future__ import annotations

from http import HTTPStatus

from speculative_operator import __version__
from speculative_operator.cli.options import Options
from speculative_operator.cluster.client import Client, Refused
from speculative_operator.cluster.connection import load_as_user
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.errors import ClusterFault

OPERATOR = "app.kubernetes.io/name=speculative-operator"
"""The chart's label of the operator's Deployment."""
VERSION_LABEL = "app.kubernetes.io/version"


async def show_versions(options: Options) -> None:
    """A line for this command, and one for each operator that the user may see."""
    print(f"kubectl speculation  {__version__}")
    where = f"namespace {options.namespace}" if options.namespace else "all namespaces"
    try:
        told = [line(found) for found in await _operators(options)] or [f"none in {where}"]
    except ClusterFault as fault:
        forbidden = isinstance(fault, Refused) and fault.status == HTTPStatus.FORBIDDEN
        missing = f"no permission to list deployments.apps in {where}: name one by -n"
        told = [f"unknown: {missing if forbidden else fault}"]
    for text in told:
        print(f"operator             {text}")


def line(deployment: Manifest) -> str:
    """Version, place and image of one installed operator."""
    metadata = deployment["metadata"]
    version = metadata["labels"].get(VERSION_LABEL, "unknown")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    advice = "" if version == __version__ else ": take the command of the same version"
    return f"{version} in {metadata['namespace']}, image {image}{advice}"


async def _operators(options: Options) -> list[Manifest]:
    configuration, _ = await load_as_user(options.kubeconfig, options.context)
    async with Client(configuration) as client:
        return await client.select("Deployment", {"labelSelector": OPERATOR}, options.namespace)
