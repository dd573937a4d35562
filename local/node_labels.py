"""The labels that AMD's node labeller writes, for a simulated node of eight MI300X."""

from __future__ import annotations

KINDS = {
    "device-id": "74a1",
    "product-name": "AMD_Instinct_MI300X_OAM",
    "family": "AI",
    "vram": "192G",
    "cu-count": "304",
    "simd-count": "1216",
    "driver-version": "6.12.12",
    "compute-memory-partition": "spx_nps1",
    "compute-partitioning-supported": "true",
    "memory-partitioning-supported": "true",
}


def amd_labels(gpus: int) -> dict[str, str]:
    """Labels of a node with `gpus` devices of one kind, in the labeller's three spellings."""
    labels = {"feature.node.kubernetes.io/amd-gpu": "true"}
    for kind, value in KINDS.items():
        labels[f"amd.com/gpu.{kind}"] = value
        labels[f"beta.amd.com/gpu.{kind}"] = value
        labels[f"beta.amd.com/gpu.{kind}.{value}"] = str(gpus)
    return labels
