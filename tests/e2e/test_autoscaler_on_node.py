"""A real HorizontalPodAutoscaler on a SpeculativeModel, by an external metric."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, until
from tests.support.external_metrics import autoscaler, external_metric
from tests.support.served import Served, apply

NAME = "scaled"
TARGET = 2


def test_an_autoscaler_scales_the_model_and_nobody_undoes_it(
    api: KubernetesApi, place: str, operator: Operator, tmp_path: Path
) -> None:
    """It writes the model's `/scale`, and only the operator its Deployments."""
    del operator
    model = apply(api, place, models.simulated_model(NAME))
    model.wait_ready()

    value = [2 * TARGET]
    with external_metric(api, place, tmp_path, lambda: value[0]):
        api.create(autoscaler(NAME, TARGET), place)
        _wait_for(model, 2)

        value[0] = TARGET
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
