"""SpeculativeModels for tests on the node: small ones of the real vLLM, and simulated engines."""

from __future__ import annotations

from typing import Any

from local import images
from local.model_volume import CLAIM
from tests.support.api import Manifest

QUICK_WINDOWS = {"drafts": 50, "minSeconds": 1, "maxSeconds": 5}
"""For simulated engines, whose pages have no noise of a busy machine."""


def _resource(name: str, spec: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "speculation.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": name},
        "spec": spec,
    }


def speculation(method: str, draft: str | None = None, capacity: int = 4) -> dict[str, Any]:
    """`spec.speculation` with a draft among the tiny models."""
    if method == "none":
        return {"method": "none"}
    wanted: dict[str, Any] = {"method": method, "proposalLength": {"capacity": capacity}}
    if draft:
        wanted["draft"] = {"source": f"pvc://{CLAIM}/{draft}"}
    return wanted


def vllm_model(name: str, proposal: dict[str, Any], **tuning: Any) -> Manifest:
    """A real vLLM on the CPU with the tiny target, float32, windows of 5 s."""
    return _resource(
        name,
        {
            "model": {
                "source": f"pvc://{CLAIM}/target",
                "servedNames": [name],
                "dtype": "float32",
                "maxModelLen": 512,
                "maxNumSeqs": 8,
            },
            "speculation": proposal,
            "tuning": {"window": {"drafts": 100, "minSeconds": 5, "maxSeconds": 15}, **tuning},
            "accelerator": {"products": ["MI300X"]},
            "runtime": {
                "args": [
                    "--enforce-eager",
                    "--max-num-batched-tokens=512",
                    "--kv-cache-memory-bytes=67108864",
                    "--seed=0",
                ],
                "sharedMemory": "256Mi",
                "drainSeconds": 5,
            },
        },
    )


def simulated_model(
    name: str,
    *,
    target: str = "Qwen/Qwen3-8B",
    method: str = "eagle3",
    draft: str = "example/draft",
    workload: str = "gsm8k",
    **sections: Any,
) -> Manifest:
    """A simulated engine that behaves like one group of the study's rows."""
    spec: dict[str, Any] = {
        "model": {"source": f"hf://{target}", "servedNames": [name], "maxNumSeqs": 64},
        "speculation": {"method": method, "draft": {"source": f"hf://{draft}"}},
        "tuning": {"window": QUICK_WINDOWS},
        "accelerator": {"products": ["MI300X"]},
        "runtime": {
            "image": images.reference("simulated-engine"),
            "env": [{"name": "SIMULATED_WORKLOAD", "value": workload}],
            "sharedMemory": "64Mi",
            "drainSeconds": 2,
        },
    }
    for section, value in sections.items():
        spec[section] = {**spec.get(section, {}), **value} if isinstance(value, dict) else value
    return _resource(name, spec)
