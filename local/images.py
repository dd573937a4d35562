"""The project's images: built from its own Dockerfiles, named after their content.

`python -m local.images [NAME…]` builds what is missing and brings it into the running cluster; it
prints the references. A reference changes when a file that its Dockerfile copies changes, so a pod
with it runs that content and nothing is built or imported twice.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local import base_image, binaries, buildah, machine, node_images
from local.paths import CHECKOUT, LOCAL, content_key
from local.waiting import say

REPOSITORY = "localhost/speculative-operator"
"""As the chart's defaults: what buildah and podman call an image of one's own, in no registry."""
# What Dockerfiles ask for; in the store its tag also tells its content.
BASE = "docker.io/library/python:3.11-slim"
PAUSE = "pause"


@dataclass(frozen=True)
class Source:
    """What an image is built from: a Dockerfile, and the folder that its COPY lines start at."""

    dockerfile: Path
    context: Path


SOURCES = {
    PAUSE: Source(LOCAL / "pause" / "Dockerfile", CHECKOUT),
    "operator": Source(CHECKOUT / "images" / "operator" / "Dockerfile", CHECKOUT),
    "vllm-plugin": Source(
        CHECKOUT / "images" / "vllm-plugin" / "Dockerfile", CHECKOUT / "images" / "vllm-plugin"
    ),
    "simulated-engine": Source(LOCAL / "simulated_engine" / "Dockerfile", CHECKOUT),
    "vllm-cpu": Source(LOCAL / "vllm" / "Dockerfile", CHECKOUT),
}
PROJECT_IMAGES = tuple(name for name in SOURCES if name != PAUSE)
IGNORED_PARTS = frozenset({"__pycache__"})
IGNORED_SUFFIXES = (".pyc", ".egg-info")


def reference(name: str) -> str:
    """The full name of an image, with a tag made from all that its Dockerfile copies."""
    files = tuple(_inputs(SOURCES[name]))
    names = (str(file.relative_to(CHECKOUT)) for file in files)
    return f"{REPOSITORY}/{name}:{content_key(files, _base_reference(), *names)}"


def build(names: Sequence[str] = PROJECT_IMAGES) -> Mapping[str, str]:
    """Builds the images that are not there yet; name -> reference."""
    references = {name: reference(name) for name in names}
    for name, wanted in references.items():
        if buildah.manifest(wanted) is None:
            build_as(name, wanted)
    return references


def build_from(checkout: Path, name: str, wanted: str) -> None:
    """Builds an image of another checkout of the project, such as an earlier commit's."""
    if buildah.manifest(wanted) is None:
        _build_base()
        source = SOURCES[name]
        dockerfile, context = (
            checkout / path.relative_to(CHECKOUT) for path in (source.dockerfile, source.context)
        )
        buildah.build(dockerfile, context, wanted, {BASE: _base_reference()})


def build_as(name: str, wanted: str, *, afresh: bool = False) -> None:
    """Builds one image under the reference `wanted`; `afresh` as for buildah."""
    _build_base()
    started = time.monotonic()
    source, aliases = SOURCES[name], {BASE: _base_reference()}
    buildah.build(source.dockerfile, source.context, wanted, aliases, afresh=afresh)
    say(f"built {name} in {time.monotonic() - started:.0f} s")


def load(references: Sequence[str]) -> None:
    """Brings built images into the running cluster of this checkout."""
    node, programs = machine.require(), binaries.folder()
    present = node_images.present(node, programs)
    for wanted in references:
        if wanted not in present:
            started = time.monotonic()
            node_images.load(node, programs, wanted)
            say(f"imported {wanted} in {time.monotonic() - started:.1f} s")


def _base_reference() -> str:
    return f"{BASE}-{base_image.key()}"


def _build_base() -> None:
    if buildah.manifest(_base_reference()) is None:
        dockerfile = LOCAL / "base" / "Dockerfile"
        buildah.build(dockerfile, base_image.archive(), _base_reference(), {})


def _inputs(source: Source) -> Iterator[Path]:
    """The Dockerfile and every file that it copies from its context."""
    yield source.dockerfile
    text = source.dockerfile.read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?:COPY|ADD)\s+(.*)$", text, re.MULTILINE):
        words = line.split()
        if any(word.startswith("--from") for word in words):
            continue
        for copied in [word for word in words if not word.startswith("--")][:-1]:
            yield from _files(source.context / copied)


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise FileNotFoundError(f"{path} is copied by a Dockerfile but is not there")
    for file in [path] if path.is_file() else path.rglob("*"):
        parts = file.relative_to(CHECKOUT).parts
        if (
            file.is_file()
            and not IGNORED_PARTS.intersection(parts)
            and not any(part.endswith(IGNORED_SUFFIXES) for part in parts)
        ):
            yield file


def main(names: Sequence[str]) -> None:
    if unknown := sorted(set(names) - set(SOURCES)):
        sys.exit(f"no such image: {', '.join(unknown)}; there are {', '.join(SOURCES)}")
    references = build(names or PROJECT_IMAGES)
    load(tuple(references.values()))
    for name, built in references.items():
        print(name, built)


if __name__ == "__main__":
    main(sys.argv[1:])
