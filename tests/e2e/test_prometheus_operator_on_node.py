"""The chart's PodMonitors and PrometheusRule under the real Prometheus operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local import install
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, until
from tests.support.discovery import discovered
from tests.support.helm import CHART, RELEASE
from tests.support.prometheus import Prometheus, prometheus, scraped
from tests.support.prometheus_operator import generated, prometheus_operator, select_everything
from tests.support.served import apply

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

MONITORED = {
    "podMonitor": {"enabled": True, "interval": "1s", "labels": {}},
    "rules": {"enabled": True, "labels": {}},
    "dashboards": {"enabled": True, "labels": {"grafana_dashboard": "1"}},
}
ALERTS = (CHART / "rules" / "alerts.yaml").read_text().count("- alert: ")


@pytest.fixture
def monitored(operator: Operator, place: str, tmp_path: Path) -> Iterator[None]:
    """The chart with all that it has for Prometheus, and the CRDs that this needs."""
    del operator
    with prometheus_operator(tmp_path, place):
        install.install({"monitoring": MONITORED})
        yield
        install.install()


def test_its_monitors_find_the_operator_and_all_engines_and_its_rules_are_loaded(
    api: KubernetesApi, place: str, monitored: None, tmp_path: Path
) -> None:
    """A selector or a port that is wrong shows as a target that is not there."""
    del monitored
    model = apply(api, place, models.simulated_model("watched"))
    select_everything(place)
    of_operator = f"podMonitor/{install.NAMESPACE}/{RELEASE}/0"
    of_engines = [f"podMonitor/{install.NAMESPACE}/{RELEASE}-engines/{n}" for n in (0, 1)]
    configuration = generated(api, place, tmp_path, {of_operator, *of_engines})
    model.wait_ready()

    with (
        discovered(api, tmp_path, (install.NAMESPACE, place)) as discovery,
        prometheus(tmp_path, with_discovery(configuration, discovery)) as running,
    ):
        engine = f'{{namespace="{place}",model="watched"}}'
        for asked in (
            "sum(speculative_operator_leading)",
            f"count(speculation_start_time_seconds{engine})",
            f"count(vllm:num_requests_running{engine})",
            f'count(speculative_operator_model_mode{{namespace="{place}",name="watched"}})',
        ):
            until(f"{asked} is 1", partial(_is_one, running, asked))
        until("the rules are loaded", lambda: len(running.alerts()) == ALERTS)


def with_discovery(
    configuration: Mapping[str, Any], discovery: list[dict[str, Any]]
) -> Mapping[str, Any]:
    """Each job with its pods found by a file."""
    jobs = [scraped(job, discovery) for job in configuration["scrape_configs"]]
    return {**configuration, "scrape_configs": jobs}


def _is_one(running: Prometheus, query: str) -> bool:
    return running.value(query) == 1
