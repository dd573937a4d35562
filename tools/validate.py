"""Checks every manifest that the project renders against the schemas of all supported versions of
Kubernetes, from the oldest that the chart lets in to the one that the local cluster runs: the
chart's against each, what the operator makes (some 150) against the oldest and the newest.

`python -m tools.validate` lints the chart, renders it with each file in its `ci/` folder, and
reads those manifests and the golden files of `tests/`. Objects of kinds that are not Kubernetes's
own are left to the API server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from local import binaries

CHECKOUT = Path(__file__).resolve().parent.parent
CHART = CHECKOUT / "charts" / "speculative-operator"
NOT_OF_KUBERNETES = ("speculation.dev/", "monitoring.coreos.com/")

Manifest = Mapping[str, Any]


def supported() -> tuple[str, ...]:
    """Every minor version, `1.30` and up, the newest last."""
    lets_in = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
    oldest, newest = (
        int(version.split(".")[1]) for version in (lets_in, binaries.KUBERNETES_VERSION)
    )
    return tuple(f"1.{minor}" for minor in range(oldest, newest + 1))


def helm(*arguments: str | Path) -> str:
    """What helm printed. Ends the program with helm's own words when it failed."""
    program = binaries.folder() / "helm"
    if not program.exists():
        sys.exit(f"{program} is not built: run: make setup")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"helm {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def variants() -> tuple[Path, ...]:
    """The files of values with which the chart is rendered in checks."""
    return tuple(sorted((CHART / "ci").glob("*-values.yaml")))


def rendered(values: Path) -> Iterator[Manifest]:
    """The chart's objects for one file of values."""
    text = helm("template", "check", CHART, "--namespace", "speculation", "--values", values)
    yield from manifests(text)


def manifests(text: str) -> Iterator[Manifest]:
    """The objects of a YAML stream, empty documents left out."""
    yield from (document for document in yaml.load_all(text, yaml.CSafeLoader) if document)


def complaint(manifest: Manifest, version: str) -> str | None:
    """What the schema of its kind has against an object; None when it is as it should be."""
    if str(manifest["apiVersion"]).startswith(NOT_OF_KUBERNETES):
        return None
    try:
        kubernetes_validate.validate(dict(manifest), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        where = ".".join(str(part) for part in error.path)
        name = manifest["metadata"]["name"]
        return f"{manifest['kind']} {name}: {where}: {error.message} (Kubernetes {version})"
    except kubernetes_validate.SchemaNotFoundError:
        return f"{manifest['kind']} {manifest['apiVersion']} is unknown to Kubernetes {version}"
    return None


def sources() -> Iterator[tuple[Path, Iterator[Manifest], tuple[str, ...]]]:
    """Every file that makes manifests, with what it makes, and for which versions."""
    versions = supported()
    for values in variants():
        helm("lint", "--strict", CHART, "--values", values)
        yield values, rendered(values), versions
    for golden in sorted((CHECKOUT / "tests").glob("**/golden/**/*.yaml")):
        yield golden, manifests(golden.read_text()), (versions[0], versions[-1])


def main() -> None:
    checked: set[str] = set()
    complaints: list[str] = []
    for source, made, versions in sources():
        for manifest in made:
            text = json.dumps(manifest, sort_keys=True)
            if text in checked:
                continue
            checked.add(text)
            complaints += [
                f"{source.relative_to(CHECKOUT)}: {found}"
                for version in versions
                if (found := complaint(manifest, version))
            ]
    if complaints:
        sys.exit("\n".join(complaints))
    print(
        f"{len(checked)} manifests agree with the schemas of Kubernetes "
        f"{supported()[0]} to {supported()[-1]}"
    )


if __name__ == "__main__":
    main()
