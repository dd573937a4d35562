"""The manifests for Flux and Argo CD, and the page that shows them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from speculative_operator.api.resource import SpeculativeModelSpec
from tests.support.gitops import refused
from tests.support.helm import rendered

CHECKOUT = Path(__file__).resolve().parents[3]
GITOPS = CHECKOUT / "examples" / "gitops"
FILES = sorted(GITOPS.rglob("*.yaml"))
FLUX = sorted((GITOPS / "flux").rglob("*.yaml"))
PAGE = CHECKOUT / "docs" / "gitops.md"

Manifest = dict[str, Any]


def manifests(path: Path) -> list[Manifest]:
    """The objects of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def in_cluster() -> dict[str, Manifest]:
    """Flux's Kustomizations by name."""
    return {each["metadata"]["name"]: each for each in manifests(GITOPS / "flux" / "cluster.yaml")}


@pytest.mark.parametrize("path", FLUX, ids=lambda path: path.name)
def test_flux_reads_every_field_of_its_kinds(path: Path) -> None:
    """By its own Go types, strictly: a misspelt field would be dropped without a word."""
    own = [each for each in manifests(path) if "fluxcd.io" in each["apiVersion"]]

    assert own
    assert refused(yaml.safe_dump_all(own)) is None


def test_a_misspelt_field_of_flux_is_found() -> None:
    """A check that finds nothing must be known to find something."""
    (operator, _) = manifests(GITOPS / "flux" / "cluster.yaml")
    operator["spec"]["prun"] = True

    assert 'unknown field "spec.prun"' in str(refused(yaml.safe_dump(operator)))


def test_models_wait_for_the_operator_with_either_tool() -> None:
    """The API server knows their kind only once the CRD is there."""
    kustomizations = in_cluster()
    applications = {
        each["metadata"]["name"]: each for each in manifests(GITOPS / "argo-cd/applications.yaml")
    }
    wave = "argocd.argoproj.io/sync-wave"
    waves = {name: int(a["metadata"]["annotations"][wave]) for name, a in applications.items()}

    assert kustomizations["models"]["spec"]["dependsOn"] == [{"name": "speculative-operator"}]
    assert all(each["spec"]["wait"] for each in kustomizations.values())
    assert waves["speculative-operator"] < waves["models"]


def test_the_values_in_the_examples_are_the_charts() -> None:
    """Both tools give them to the same chart, which refuses what it does not know."""
    (release,) = [
        each
        for each in manifests(GITOPS / "flux" / "operator" / "operator.yaml")
        if each["kind"] == "HelmRelease"
    ]
    application = manifests(GITOPS / "argo-cd" / "applications.yaml")[0]
    by_flux = release["spec"]["values"]

    assert application["spec"]["source"]["helm"]["valuesObject"] == by_flux
    (deployment,) = [each for each in rendered(**by_flux) if each["kind"] == "Deployment"]
    images = [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]]
    assert images[0].startswith("registry.example.com/speculative-operator/operator:")
    assert (CHECKOUT / release["spec"]["chart"]["spec"]["chart"] / "Chart.yaml").exists()
    assert (CHECKOUT / application["spec"]["source"]["path"] / "Chart.yaml").exists()


def test_the_models_are_models_of_ours() -> None:
    """Users start from them."""
    models = [
        each for each in manifests(GITOPS / "models/models.yaml") if each["kind"] != "Namespace"
    ]

    assert models
    for model in models:
        SpeculativeModelSpec.model_validate(model["spec"])


def test_the_page_shows_the_files_as_they_are() -> None:
    """A block of its own would grow old, and nothing reads it but people."""
    texts = [path.read_text() for path in FILES]
    shown = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)

    assert shown
    for block in shown:
        for part in block.split("---\n"):
            assert any(part in text for text in texts), part
