"""`kubectl speculation version`: this package's version beside the operator's.

A version has one format of memory: of equal versions the one reads what the other has written.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from speculative_operator import __version__
from speculative_operator.cli.options import Options
from speculative_operator.cluster.client import Client, Refused
from speculative_operator.cluster.connection import load_as_user
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.errors import ClusterFault
from speculative_operator.tuning.memory import VERSION

OPERATOR = "app.kubernetes.io/name=speculative-operator"
"""The chart's label of the operator's Deployment."""
VERSION_LABEL = "app.kubernetes.io/version"
TAG = re.compile(r"[^/@]+:v?(?P<version>\d+\.\d+\.\d+)(?![\w.])[^/:@]*(@.*)?$")
"""An image's name from its last stroke on, where the tag begins with a version."""


async def show_versions(options: Options) -> None:
    """A line for this command, and one for each operator that the user may see. Raises ClusterFault
    where the operators are not known."""
    print(f"kubectl speculation  {__version__}, memory format {VERSION}")
    where = f"namespace {options.namespace}" if options.namespace else "all namespaces"
    try:
        found = await _operators(options)
    except Refused as refusal:
        if refusal.status != HTTPStatus.FORBIDDEN:
            raise
        raise ClusterFault(
            f"no permission to list deployments.apps in {where}: name one by -n"
        ) from refusal
    for told in map(line, found):
        print(f"operator             {told}")
    if not found:
        print(f"operator             none in {where}")


def line(deployment: Manifest) -> str:
    """Chart, place and image of one installed operator, and whether this command fits it."""
    metadata = deployment["metadata"]
    chart = metadata["labels"].get(VERSION_LABEL, "unknown")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    told = f"chart {chart} in {metadata['namespace']}, image {image}"
    runs = of_image(image) or chart
    if runs != __version__:
        told += f": take the command of version {runs}, which reads what this operator writes"
    if runs != chart:
        told += f"; the chart was made for an image of version {chart}"
    return told


def of_image(image: str) -> str | None:
    """The version that an image's tag begins with; None where a tag or digest tells none."""
    found = TAG.search(image)
    return found["version"] if found else None


async def _operators(options: Options) -> list[Manifest]:
    configuration, _ = await load_as_user(options.kubeconfig, options.context)
    async with Client(configuration) as client:
        return await client.select("Deployment", {"labelSelector": OPERATOR}, options.namespace)
