"""The YAML of the pages: whole objects, and parts of a model's spec as whole models."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from speculative_operator.plan.overlay import laid_over
from tests.support.pages import CHECKOUT, PAGES, Block, blocks

EXAMPLE = yaml.safe_load((CHECKOUT / "examples" / "mi300x-qwen3-8b-eagle3.yaml").read_text())
OWN = "SpeculativeModel"
VALUES = "values"
PROMETHEUS = "prometheus"
"""Follow `yaml` where a block is values of the chart, or Prometheus's configuration."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """One object, and the block that it stands in."""

    block: Block
    manifest: Manifest

    def __str__(self) -> str:
        return f"{self.block}-{self.manifest['kind']}"


def written() -> Iterator[Written]:
    """Every object of every page. A part of a spec is laid over an example."""
    for block in yaml_blocks():
        if block.mark in (VALUES, PROMETHEUS):
            continue
        for document in yaml.safe_load_all(block.text):
            whole = document if "kind" in document else laid_over(deepcopy(EXAMPLE), document)
            yield Written(block, whole)


def yaml_blocks() -> Iterator[Block]:
    """The blocks that are YAML."""
    yield from (block for page in PAGES for block in blocks(page) if block.language == "yaml")
