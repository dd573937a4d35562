"""Models for tests: everything has a working default, so a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.plan.settings import Settings

SETTINGS = Settings(engine_image="vllm/vllm-openai-rocm:v0.33.0", plugin_image="plugin:1")

EAGLE3 = {"method": "eagle3", "draft": {"source": "hf://yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"}}


def a_model(
    *,
    name: str = "llama",
    annotations: Mapping[str, str] | None = None,
    model: Mapping[str, Any] | None = None,
    speculation: Mapping[str, Any] | None = None,
    **sections: Any,
) -> SpeculativeModel:
    """An EAGLE-3 model on one MI300X. `model` is merged into its section, others replace theirs."""
    spec = {
        "model": {"source": "hf://meta-llama/Llama-3.1-8B-Instruct", **(model or {})},
        "speculation": speculation or EAGLE3,
        "accelerator": {"products": ["MI300X"]},
        **sections,
    }
    metadata = {
        "name": name,
        "namespace": "prod",
        "uid": "5f0c9c3e-6f43-4b6e-9b6e-0a8a4c1f0001",
        "generation": 1,
        "annotations": dict(annotations or {}),
    }
    return SpeculativeModel.model_validate({"metadata": metadata, "spec": spec})
