"""Manifests as programs in Go read them."""

from __future__ import annotations

import yaml

from tests.support.documents import documents


def test_a_revision_that_looks_like_a_number_stays_text() -> None:
    """One in a few hundred does, and the API server refuses a label that is a number."""
    label = {"revision": "12e4567890"}

    text = documents([label, {}])

    assert '"12e4567890"' in text
    assert list(yaml.safe_load_all(text)) == [label, {}]
