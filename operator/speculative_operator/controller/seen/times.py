"""Time as Kubernetes writes it."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(unix: float) -> str:
    """UTC with seconds: `2026-08-23T10:00:00Z`."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(written: str) -> float:
    """The Unix time of what Kubernetes has written."""
    return datetime.fromisoformat(written).timestamp()
