"""Which operator the command fits."""

from __future__ import annotations

import pytest

from speculative_operator import __version__
from speculative_operator.cli.version import line, of_image

DIGEST = f"sha256:{'0' * 64}"


def told(chart: str, image: str) -> str:
    """The line for an operator of that chart and image."""
    return line(
        {
            "metadata": {
                "name": "speculative-operator",
                "namespace": "prod",
                "labels": {"app.kubernetes.io/version": chart},
            },
            "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        }
    )


@pytest.mark.parametrize(
    "image",
    [
        f"registry:5000/operator:{__version__}",
        f"registry/operator:v{__version__}-4c1f2e0",
        "registry/operator:main",
        f"registry/operator@{DIGEST}",
    ],
)
def test_an_operator_of_the_same_version_is_told_without_advice(image: str) -> None:
    """By the image's tag where it is a version; else by the chart, which was made for it."""
    assert told(__version__, image) == f"chart {__version__} in prod, image {image}"


def test_a_command_of_another_version_is_told_which_one_to_take() -> None:
    """A version has its own format of memory."""
    assert told("0.0.9", "registry/operator:0.0.9").endswith(
        ": take the command of version 0.0.9, which reads what this operator writes"
    )
    assert "take the command of version 0.0.9" in told("0.0.9", f"registry/operator@{DIGEST}")


def test_an_image_of_another_version_than_its_chart_is_told() -> None:
    """The image runs, and its chart may lack what it needs: a right, a field of the CRD."""
    other = told(__version__, "registry/operator:9.9.9")
    left = told("0.0.9", f"registry/operator:{__version__}")

    assert "take the command of version 9.9.9" in other
    assert other.endswith(f"; the chart was made for an image of version {__version__}")
    assert left.endswith("; the chart was made for an image of version 0.0.9")
    assert "take the command" not in left


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry:5000/operator", None),
        ("registry/operator:1", None),
        ("registry/operator:1.2.3.4", None),
        ("registry/operator:abc1.2.3", None),
        (f"registry/operator:1.2.3@{DIGEST}", "1.2.3"),
        ("registry/operator:v1.2.3-rc1", "1.2.3"),
    ],
)
def test_a_version_is_read_from_a_tag_that_begins_with_one(image: str, version: str | None) -> None:
    """The port of a registry and a digest are none."""
    assert of_image(image) == version
