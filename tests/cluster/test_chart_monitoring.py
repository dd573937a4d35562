"""What the chart makes for Prometheus and Grafana. Needs helm, which is one of the cluster's
programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.helm import CHART, RELEASE, of_kind, render, rendered

EVERYTHING: dict[str, Any] = {
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "rules": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {"enabled": True},
}
PROMETHEUS = {"url": "https://prometheus:9091"}


def test_nothing_of_it_is_there_by_default() -> None:
    """A cluster without the Prometheus operator has no such kinds."""
    manifests = rendered()

    assert not of_kind(manifests, "PodMonitor", "PrometheusRule", "ConfigMap")


def test_monitors_and_rules_have_the_labels_that_a_prometheus_selects_by() -> None:
    """The usual installation looks for the label of its own release."""
    found = of_kind(rendered(monitoring=EVERYTHING), "PodMonitor", "PrometheusRule")

    assert len(found) == 3
    assert all(each["metadata"]["labels"]["release"] == "prometheus" for each in found)


@pytest.mark.parametrize(
    ("namespaces", "selector"),
    [([], {"any": True}), (["a", "b"], {"matchNames": ["a", "b"]})],
)
def test_engines_are_looked_for_where_models_are_served(
    namespaces: list[str], selector: dict[str, Any]
) -> None:
    """In all namespaces, or in those that are listed."""
    (engines,) = [
        monitor
        for monitor in of_kind(rendered(monitoring=EVERYTHING, namespaces=namespaces), "PodMonitor")
        if monitor["metadata"]["name"] == f"{RELEASE}-engines"
    ]

    assert engines["spec"]["namespaceSelector"] == selector
    ports = [endpoint["port"] for endpoint in engines["spec"]["podMetricsEndpoints"]]
    assert ports == ["speculation", "http"]


def test_each_dashboard_is_a_config_map_that_grafana_finds() -> None:
    """By the label of its sidecar."""
    maps = of_kind(rendered(monitoring=EVERYTHING), "ConfigMap")

    files = {name: text for each in maps for name, text in each["data"].items()}
    assert all(each["metadata"]["labels"]["grafana_dashboard"] == "1" for each in maps)
    assert {name: json.loads(text) for name, text in files.items()} == {
        path.name: json.loads(path.read_text()) for path in (CHART / "dashboards").glob("*.json")
    }


def test_a_token_and_certificates_are_files_of_the_operator() -> None:
    """It has no right to read a Secret, and needs none."""
    prometheus = {
        **PROMETHEUS,
        "tokenSecret": {"name": "token", "key": "bearer"},
        "caConfigMap": {"name": "ca", "key": "ca.crt"},
    }
    (deployment,) = of_kind(rendered(monitoring={"prometheus": prometheus}), "Deployment")

    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert {volume["name"] for volume in pod["volumes"]} >= set(mounts)
    assert f"--prometheus-url={PROMETHEUS['url']}" in container["args"]
    assert f"--prometheus-token-file={mounts['prometheus-token']}/bearer" in container["args"]
    assert f"--prometheus-ca-file={mounts['prometheus-ca']}/ca.crt" in container["args"]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"prometheus": {"url": "prometheus:9090"}}, "url"),
        ({"prometheus": {**PROMETHEUS, "tokenSecret": {"name": "token"}}}, "tokenSecret"),
        ({"podMonitor": {"enabled": True, "interval": "often"}}, "interval"),
        ({"alerts": {"enabled": True}}, "alerts"),
        ({"prometheus": {"tokenSecret": {"name": "a", "key": "b"}}}, "Write monitoring.prometheus"),
        ({"prometheus": {"caConfigMap": {"name": "a", "key": "b"}}}, "Write monitoring.prometheus"),
        (
            {"prometheus": PROMETHEUS, "podMonitor": {"enabled": True, "interval": "5m"}},
            "Write at most 30s, as 15s, instead of 5m.",
        ),
    ],
)
def test_values_that_mean_nothing_are_refused(wrong: dict[str, Any], where: str) -> None:
    """A typing error would else be a monitor that is not there."""
    answer = render(monitoring=wrong)

    assert not answer.done
    assert where in answer.complaint
