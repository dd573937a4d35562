"""Manifests as text for programs that are written in Go."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def documents(manifests: Iterable[Mapping[str, Any]]) -> str:
    """One YAML document each, written as JSON: PyYAML leaves a revision such as 12e4567890 without
    quotes, which Go's YAML takes for a number."""
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)
