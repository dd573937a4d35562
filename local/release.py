"""The two images that a cluster needs, built afresh: `python -m local.release`.

Prints digest and size of each. The same checkout on the same base image gives the same digests;
`python -m local.release --twice` builds everything two times and fails if one of them differs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from local import buildah, images
from speculative_operator import __version__

PUBLISHED = ("operator", "vllm-plugin")


@dataclass(frozen=True)
class Published:
    """One image in the OCI layout of this machine."""

    reference: str
    digest: str
    size: int
    """Bytes of its layers as they are pulled."""

    def __str__(self) -> str:
        return f"{self.reference} {self.digest} {self.size / 1e6:.1f} MB"


def publish(name: str) -> Published:
    """Builds one image with nothing of an earlier build."""
    reference = f"{images.REPOSITORY}/{name}:{__version__}"
    images.build_as(name, reference, afresh=True)
    descriptor = buildah.manifest(reference)
    assert descriptor is not None
    return Published(reference, str(descriptor["digest"]), compressed(reference))


def compressed(reference: str) -> int:
    """Bytes of an image's layers as they are pulled."""
    return sum(layer["size"] for layer in buildah.read(reference)["layers"])


def main(arguments: Sequence[str]) -> None:
    if list(arguments) not in ([], ["--twice"]):
        sys.exit(__doc__)
    for name in PUBLISHED:
        made = publish(name)
        if arguments and (again := publish(name)) != made:
            sys.exit(f"{made}\nbuilt again it is another one: {again}")
        print(f"{made}, the same twice" if arguments else made)


if __name__ == "__main__":
    main(sys.argv[1:])
