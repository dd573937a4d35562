"""The plugin's image mounted as a volume, on the real kubelet and containerd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local import images, install
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi
from tests.support.goodput import page
from tests.support.served import apply


@pytest.fixture
def mounting(operator: Operator) -> Iterator[Operator]:
    """The operator, told to mount the plugin's image."""
    image = install.image(images.reference("vllm-plugin"))
    install.install({"plugin": {**image, "imageVolume": True}})
    yield operator
    install.install()


@pytest.mark.long
def test_an_engine_runs_the_plugin_of_a_mounted_image(
    api: KubernetesApi, place: str, mounting: Operator
) -> None:
    """It reports as one whose plugin was copied; no init container ran."""
    del mounting
    served = apply(api, place, models.simulated_model("mounted"))
    served.wait_ready()
    spec = served.pod()["spec"]

    assert "initContainers" not in spec
    assert page(served.address())["tunable"] is True
