"""Checks every manifest that the project renders against the schemas of its Kubernetes version.

`python -m tools.validate` lints the chart, renders it with each file in its `ci/` folder, and
reads those manifests and the golden files of `tests/`. Objects of our own kind are left to the API
server.
"""

from __future__ import annotations

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
OWN_GROUP = "speculation.dev/"
VERSION = binaries.KUBERNETES_VERSION.removeprefix("v").rsplit(".", 1)[0]

Manifest = Mapping[str, Any]


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
    yield from (document for document in yaml.safe_load_all(text) if document)


def complaint(manifest: Manifest) -> str | None:
    """What the schema of its kind has against an object; None when it is as it should be."""
    if str(manifest["apiVersion"]).startswith(OWN_GROUP):
        return None
    try:
        kubernetes_validate.validate(dict(manifest), VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        where = ".".join(str(part) for part in error.path)
        return f"{manifest['kind']} {manifest['metadata']['name']}: {where}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError:
        return f"{manifest['kind']} {manifest['apiVersion']} is unknown to Kubernetes {VERSION}"
    return None


def sources() -> Iterator[tuple[Path, Iterator[Manifest]]]:
    """Every file that makes manifests, with what it makes."""
    for values in variants():
        helm("lint", "--strict", CHART, "--values", values)
        yield values, rendered(values)
    for golden in sorted((CHECKOUT / "tests").glob("**/golden/**/*.yaml")):
        yield golden, manifests(golden.read_text())


def main() -> None:
    checked = 0
    complaints: list[str] = []
    for source, made in sources():
        for manifest in made:
            checked += 1
            if found := complaint(manifest):
                complaints.append(f"{source.relative_to(CHECKOUT)}: {found}")
    if complaints:
        sys.exit("\n".join(complaints))
    print(f"{checked} manifests agree with the schemas of Kubernetes {VERSION}")


if __name__ == "__main__":
    main()
