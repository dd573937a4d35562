"""The two images that are published: what they say of themselves, and whether they come again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local import buildah, images
from local.release import PUBLISHED, compressed, publish
from speculative_operator import __version__

MOST_BYTES = {"operator": 60e6, "vllm-plugin": 3e6}
"""Compressed. Each node of a cluster pulls the second one, and a rollout may wait for it."""


def configuration(name: str) -> Mapping[str, Any]:
    """The image's configuration, as the registry would serve it."""
    found: Mapping[str, Any] = json.loads(
        buildah.blob(buildah.read(images.build([name])[name])["config"]["digest"])
    )
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_image_says_what_it_is_and_runs_as_nobody(name: str) -> None:
    """Scanners and registries read the labels, restricted pod security the user."""
    found = configuration(name)["config"]
    prefix = "org.opencontainers.image."

    assert found["User"] == "65532:65532"
    assert found["Labels"][f"{prefix}version"] == __version__
    assert found["Labels"][f"{prefix}licenses"] == "Apache-2.0"
    assert {f"{prefix}title", f"{prefix}description"} <= set(found["Labels"])


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_image_is_small(name: str) -> None:
    """No base image, no package manager, no pip, no shell that is not needed."""
    assert compressed(images.build([name])[name]) < MOST_BYTES[name]


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_same_checkout_gives_the_same_image(name: str) -> None:
    """Who does not trust our registry can build it and compare."""
    assert publish(name) == publish(name)
