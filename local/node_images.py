"""Brings exported images into the node's containerd, without the blobs that are there already."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

from local import buildah
from local.machine import Machine

CTR = ("--namespace", "k8s.io")


def _ctr(machine: Machine, binaries: Path, *arguments: str) -> list[str]:
    return machine.inside(str(binaries / "ctr"), *CTR, *arguments)


def _lines(machine: Machine, binaries: Path, *arguments: str) -> frozenset[str]:
    command = _ctr(machine, binaries, *arguments)
    return frozenset(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    )


def present(machine: Machine, binaries: Path) -> frozenset[str]:
    """The references of the images that the node has."""
    return _lines(machine, binaries, "images", "ls", "--quiet")


def answers(machine: Machine, binaries: Path) -> bool:
    """Whether containerd is there."""
    command = _ctr(machine, binaries, "version")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def load(machine: Machine, binaries: Path, reference: str) -> None:
    """Imports one exported image under its reference."""
    descriptor = buildah.manifest(reference)
    if descriptor is None:
        raise RuntimeError(f"{reference} is not built: run: python -m local.images")
    there = _lines(machine, binaries, "content", "ls", "--quiet")
    with subprocess.Popen(
        _ctr(machine, binaries, "images", "import", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as importer:
        assert importer.stdin is not None
        assert importer.stderr is not None
        with tarfile.open(fileobj=importer.stdin, mode="w|") as stream:
            _write(stream, descriptor, there)
        importer.stdin.close()
        said = importer.stderr.read().decode()
    if importer.returncode:
        raise RuntimeError(f"containerd refused the import of {reference}: {said}")


def name(machine: Machine, binaries: Path, reference: str, other: str) -> None:
    """Gives an image that is there another name, which it takes away from any other image."""
    command = _ctr(machine, binaries, "images", "tag", "--force", reference, other)
    subprocess.run(command, capture_output=True, check=True)


def _write(stream: tarfile.TarFile, descriptor: dict[str, object], there: frozenset[str]) -> None:
    """An OCI layout with one image, less the blobs in `there`."""
    reference = json.loads(json.dumps(descriptor))
    reference["annotations"]["io.containerd.image.name"] = reference["annotations"][
        "org.opencontainers.image.ref.name"
    ]
    index = {"schemaVersion": 2, "manifests": [reference]}
    _add(stream, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
    _add(stream, "index.json", json.dumps(index).encode())
    top = _blob(str(descriptor["digest"]))
    content = json.loads(top.read_text())
    for digest in (
        descriptor["digest"],
        content["config"]["digest"],
        *(layer["digest"] for layer in content["layers"]),
    ):
        if digest not in there:
            blob = _blob(digest)
            stream.add(blob, arcname=str(blob.relative_to(buildah.LAYOUT)))


def _blob(digest: str) -> Path:
    return buildah.LAYOUT / "blobs" / digest.replace(":", "/")


def _add(stream: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    stream.addfile(entry, io.BytesIO(content))
