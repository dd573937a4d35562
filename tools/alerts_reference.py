"""The reference page of alerts, made from the rules that the chart ships."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

INTRODUCTION = """\
# Alerts

The chart's value `monitoring.rules.enabled` brings them as a PrometheusRule; without the Prometheus
operator, load `charts/speculative-operator/rules/alerts.yaml` as a file of rules.
Reasons are explained in [troubleshooting](../troubleshooting.md), series in [metrics](metrics.md).
"""


def alerts_reference(rules: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    return "\n".join([INTRODUCTION, *_alerts(rules)])


def _alerts(rules: Mapping[str, Any]) -> Iterator[str]:
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield "\n".join(
                [
                    f"## {rule['alert']}\n",
                    f"{_plain(rule['annotations']['summary'])}",
                    f"Severity {rule['labels']['severity']}, after {rule['for']}.\n",
                    f"**What to do:** {rule['annotations']['runbook']}\n",
                    f"```promql\n{rule['expr']}\n```\n",
                ]
            )


def _plain(summary: str) -> str:
    """With the model's name as a word."""
    return summary.replace("{{ $labels.namespace }}/{{ $labels.name }}", "NAMESPACE/NAME")
