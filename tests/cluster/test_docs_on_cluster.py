"""The real API server takes the manifests of the pages, rules in CEL included."""

from __future__ import annotations

from copy import deepcopy

from tests.support.doc_manifests import OWN, written
from tests.support.kubectl import Kubectl


def test_the_api_server_takes_every_model_of_the_pages(kubectl: Kubectl, namespace: str) -> None:
    """What a reader copies must not be refused, nor lose a field."""
    models = [deepcopy(found.manifest) for found in written() if found.manifest["kind"] == OWN]
    for number, model in enumerate(models):
        model["metadata"] |= {"namespace": namespace, "name": f"page-{number}"}

    dry = ("create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-")
    taken = kubectl(*dry, objects=tuple(models))

    assert len(taken.splitlines()) == len(models)
