"""What every example becomes, as committed files: small tests hold the rules, these the look."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tools.golden import GOLDEN, examples, golden, manifests, models

KUBERNETES = "1.37"

every_example = pytest.mark.parametrize("example", examples(), ids=lambda example: example.stem)


@every_example
def test_an_example_becomes_its_golden_file(example: Path) -> None:
    """A change of what runs is seen by whoever reads the commit: rewrite with `make golden`."""
    assert (GOLDEN / example.name).read_text() == golden(example)


@every_example
def test_every_manifest_agrees_with_the_schema_of_its_kind(example: Path) -> None:
    """Unknown fields are refused too: the API server would drop them without a word."""
    text = (GOLDEN / example.name).read_text()
    for manifest in yaml.load_all(text, yaml.CSafeLoader):
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_no_golden_file_is_left_over() -> None:
    """A file without its example is never checked again."""
    assert {file.name for file in GOLDEN.glob("*.yaml")} == {path.name for path in examples()}


@every_example
def test_rendering_twice_gives_the_same(example: Path) -> None:
    """A builder that changes its input makes a drift that is repaired for ever."""
    for model in models(example):
        assert list(manifests(model)) == list(manifests(model))
