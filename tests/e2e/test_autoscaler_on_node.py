"""A real HorizontalPodAutoscaler on a SpeculativeModel, by an external metric."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, until
from tests.support.external_metrics import external_metric
from tests.support.served import Served, apply

NAME = "scaled"
TARGET = 2
AT_ONCE = {"stabilizationWindowSeconds": 0}


def autoscaler() -> Manifest:
    """One to two replicas, so that each has `TARGET` requests that wait."""
    target = {"apiVersion": "speculation.dev/v1alpha1", "kind": "SpeculativeModel", "name": NAME}
    metric = {
        "type": "External",
        "external": {
            "metric": {"name": "waiting"},
            "target": {"type": "AverageValue", "averageValue": str(TARGET)},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [metric],
            "behavior": {"scaleUp": AT_ONCE, "scaleDown": AT_ONCE},
        },
    }


def test_an_autoscaler_scales_the_model_and_nobody_undoes_it(
    api: KubernetesApi, place: str, operator: Operator, tmp_path: Path
) -> None:
    """It writes the model's `/scale`, and only the operator its Deployments."""
    del operator
    model = apply(api, place, models.simulated_model(NAME))
    model.wait_ready()

    with external_metric(api, place, tmp_path, value=2 * TARGET) as metric:
        api.create(autoscaler(), place)
        _wait_for(model, 2)

        metric.value = TARGET
        _wait_for(model, 1)
        api.delete("HorizontalPodAutoscaler", place, NAME)

    deployments = api.all("Deployment", place)
    assert [found["spec"]["replicas"] for found in deployments] == [1]


def _wait_for(model: Served, replicas: int) -> None:
    """Asked for by the autoscaler, and running."""
    model.wait(
        f"the autoscaler asks for {replicas}",
        lambda found: found["spec"]["replicas"] == replicas,
        timeout=90,
    )
    model.wait_ready()
    until(f"there are {replicas} pods", lambda: len(model.pods()) == replicas)
