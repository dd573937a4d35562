"""What the operator's installation decides: it shapes new revisions, never recorded ones."""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.runtime import PullPolicy


@dataclass(frozen=True)
class Settings:
    """Chart values that end up in pods."""

    engine_image: str
    """vLLM for ROCm, where `spec.runtime.image` is not set."""
    plugin_image: str
    """Holds the live speculation plugin; an init container copies it into the engine's pod."""
    plugin_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    plugin_image_volume: bool = False
    """Mounts the plugin's image as a volume instead, for clusters that can (Kubernetes 1.36)."""
