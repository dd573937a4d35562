"""SpeculativeModels of simulated engines for tests on the node."""

from __future__ import annotations

from typing import Any

from local import images
from tests.support.api import Manifest

QUICK_WINDOWS = {"drafts": 50, "minSeconds": 1, "maxSeconds": 5}
"""For simulated engines, whose pages have no noise of a busy machine."""

QUICK_PROBES = {
    "spec": {
        "containers": [
            {
                "name": "engine",
                "startupProbe": {"periodSeconds": 1, "failureThreshold": 300},
                "readinessProbe": {"periodSeconds": 1},
            }
        ]
    }
}
"""Laid over the pods of tests, which wait for each of them to be ready."""

QUICK_ENGINE = QUICK_PROBES["spec"]["containers"][0]
QUICK_PODS = {
    "spec": {"containers": [{**QUICK_ENGINE, "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}}]}
}
"""Besides, they end sooner: on one node no Service sends requests to them after a second or so.
Where rollouts under load are tested, pods end as the operator has it."""


def _resource(name: str, spec: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "speculation.dev/v1alpha1",
        "kind": "SpeculativeModel",
        "metadata": {"name": name},
        "spec": spec,
    }


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
        "tuning": {"window": QUICK_WINDOWS, "trialSharePercent": 40},
        "accelerator": {"products": ["MI300X"]},
        "runtime": {
            "image": images.reference("simulated-engine"),
            "env": [{"name": "SIMULATED_WORKLOAD", "value": workload}],
            "sharedMemory": "64Mi",
            "drainSeconds": 2,
            "podTemplate": QUICK_PODS,
        },
    }
    for section, value in sections.items():
        spec[section] = {**spec.get(section, {}), **value} if isinstance(value, dict) else value
    return _resource(name, spec)
