"""One version for chart, operator, plugin, images and command, raised with each state that somebody
may install."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import live_speculation
from speculative_operator import __version__
from speculative_operator.tuning import memory
from tests.support.helm import CHART

CHECKOUT = Path(__file__).resolve().parents[3]
TO_COPY = (
    "docs/cli.md",
    "docs/gitops.md",
    "docs/operations.md",
    "docs/quick-start-mi300x.md",
    "examples/gitops/argo-cd/applications.yaml",
    "examples/gitops/flux/operator/operator.yaml",
)
TAG = re.compile(
    r"(?:targetRevision: v|tag: v?|TAG=|/operator:|chart |kubectl speculation  )(\d+\.\d+\.\d+)"
)

FORMATS = {"0.6.0": 4}
"""Which format of memory the versions have. `kubectl speculation` tells by its version whether it
can read what an operator wrote, so a new format needs a line of its own here."""


def test_a_new_format_of_memory_is_a_new_version() -> None:
    """The command of another format cannot read the past, and would not know why."""
    assert FORMATS.get(__version__) == memory.VERSION


def test_chart_operator_and_plugin_have_one_version() -> None:
    """They were tested together; the chart's is the tag of both images."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["version"] == chart["appVersion"] == __version__
    assert live_speculation.__version__ == __version__


def test_the_package_reads_its_version_from_the_code() -> None:
    """A copy in pyproject.toml could differ."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["version"]
    assert "version" not in project["project"]


@pytest.mark.parametrize("image", ["operator", "vllm-plugin"])
def test_an_image_is_labelled_with_the_version(image: str) -> None:
    """A label is all that an image pulled by digest says of itself."""
    text = (CHECKOUT / "images" / image / "Dockerfile").read_text()

    assert f'org.opencontainers.image.version="{__version__}"' in text


@pytest.mark.parametrize("file", TO_COPY)
def test_what_is_copied_from_pages_and_examples_is_of_this_version(file: str) -> None:
    """Nobody looks up another one."""
    tags = TAG.findall((CHECKOUT / file).read_text())

    assert tags
    assert set(tags) == {__version__}
