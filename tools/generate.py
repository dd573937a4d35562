"""Writes what is made from the code: the CRD, its copy in the chart, the reference pages, the
dashboards.

`python -m tools.generate` writes the files; a test holds them to what it would write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from speculative_operator.api.schema import CRD_NAME, Schema, custom_resource_definition
from tools import chart_reference
from tools.alerts_reference import alerts_reference
from tools.cli_reference import cli_reference
from tools.dashboards import dashboards
from tools.metrics_reference import metrics_reference
from tools.reference import reference
from tools.validate import CHART, supported

CHECKOUT = Path(__file__).resolve().parent.parent
CRD = CHECKOUT / "crds" / "speculation.dev_speculativemodels.yaml"
CHART_CRD = CHART / "templates" / "crd.yaml"
REFERENCE = CHECKOUT / "docs" / "reference" / "resource.md"
DASHBOARDS = CHART / "dashboards"
RULES = CHART / "rules" / "alerts.yaml"
ALERTS = CHECKOUT / "docs" / "reference" / "alerts.md"
METRICS = CHECKOUT / "docs" / "reference" / "metrics.md"
CLI = CHECKOUT / "docs" / "reference" / "cli.md"
CHART_REFERENCE = CHECKOUT / "docs" / "reference" / "chart.md"

CHART_HEADER = "Made by `make generate` from the chart's values.yaml and its schema. Do not edit."
HEADER = "Made by `make generate` from operator/speculative_operator/api. Do not edit."
METRICS_HEADER = (
    "Made by `make generate` from operator/speculative_operator/controller/metrics/"
    "described.py and the plugin's page. Do not edit."
)
ALERTS_HEADER = (
    "Made by `make generate` from charts/speculative-operator/rules/alerts.yaml. Do not edit."
)

CLI_HEADER = (
    "Made by `make generate` from operator/speculative_operator/cli/options.py. Do not edit."
)

# Helm never upgrades what lies in a chart's `crds/` folder, so the CRD is a template. The policy
# keeps it, and with it every model, when the release is uninstalled.
CHART_HEAD = f"""\
{{{{- /* {HEADER} */ -}}}}
{{{{- if .Values.crd.create }}}}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {CRD_NAME}
  annotations:
    helm.sh/resource-policy: keep
  labels:
    {{{{- include "operator.labels" . | nindent 4 }}}}
"""
CHART_TAIL = "{{- end }}\n"


def dump(value: Schema) -> str:
    """YAML with the keys in the order of the models."""
    return yaml.safe_dump(value, sort_keys=False, width=100, allow_unicode=True)


def files() -> Mapping[Path, str]:
    """Every generated file and its text."""
    crd = custom_resource_definition()
    return {
        CRD: f"# {HEADER}\n{dump(crd)}",
        CHART_CRD: CHART_HEAD + dump({"spec": crd["spec"]}) + CHART_TAIL,
        REFERENCE: f"<!-- {HEADER} -->\n{reference(crd)}",
        METRICS: f"<!-- {METRICS_HEADER} -->\n{metrics_reference()}",
        CLI: f"<!-- {CLI_HEADER} -->\n{cli_reference()}",
        CHART_REFERENCE: f"<!-- {CHART_HEADER} -->\n{_chart_reference()}",
        ALERTS: f"<!-- {ALERTS_HEADER} -->\n{alerts_reference(yaml.safe_load(RULES.read_text()))}",
        **{DASHBOARDS / name: text for name, text in dashboards().items()},
    }


def _chart_reference() -> str:
    schema = json.loads((CHART / "values.schema.json").read_text())
    return chart_reference.reference((CHART / "values.yaml").read_text(), schema, supported())


def main() -> None:
    """Writes them, and tells which."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path.relative_to(CHECKOUT))


if __name__ == "__main__":
    main()
