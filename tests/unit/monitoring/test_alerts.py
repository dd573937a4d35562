"""The alerts of the chart: promtool reads and plays them, and each says what to do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from speculative_operator.api.conditions import REASONS, ConditionType
from speculative_operator.controller.metrics.described import OF_MODELS, OF_OPERATOR
from tests.support.helm import RELEASE_NAMESPACE, of_kind, rendered

CHECKOUT = Path(__file__).resolve().parents[3]
RULES = CHECKOUT / "charts" / "speculative-operator" / "rules" / "alerts.yaml"
PLAYED = Path(__file__).parent / "alerts.test.yaml"
ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
KINDS = [kind.value for kind in ConditionType]
BY_NAME = {kind.value: reasons for kind, reasons in REASONS.items()}


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_the_rules() -> None:
    """A rule that it refuses takes the whole file with it."""
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "--lint-fatal", RULES)


def test_each_alert_is_raised_in_its_time_and_ends_by_itself() -> None:
    """By promtool's own test of rules."""
    promtool("test", "rules", PLAYED)


def test_each_alert_is_played() -> None:
    """One that no test raises may never be raised."""
    played = re.findall(r"alertname: (\w+)", PLAYED.read_text())

    assert set(played) == {rule["alert"] for rule in ALERTS}


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_names_series_and_words_that_there_are(rule: dict[str, Any]) -> None:
    """A reason that was renamed would silence it for ever."""
    expression, known = rule["expr"], {of.series for of in (*OF_OPERATOR, *OF_MODELS)}
    condition = re.search(r'condition="(\w+)"', expression)
    reasons = re.search(r'reason=~?"([\w|]+)"', expression)

    assert set(re.findall(r"speculative_operator\w+", expression)) <= known
    if reasons is not None:
        assert condition is not None
        possible = {reason.value for reason in BY_NAME[condition[1]]}
        assert set(reasons[1].split("|")) <= possible
    elif condition is not None:
        assert condition[1] in KINDS
    assert rule["annotations"].keys() == {"summary", "runbook"}


def test_the_rule_of_a_release_looks_at_its_own_operator() -> None:
    """Another release's leader must not hide that this one has none."""
    values = {"monitoring": {"rules": {"enabled": True}}}
    (rules,) = of_kind(rendered(**values), "PrometheusRule")
    of_release = rules["spec"]["groups"][0]["rules"]
    leading = f'speculative_operator_leading{{namespace="{RELEASE_NAMESPACE}"}}'

    assert of_release[-1]["expr"] == f"sum by (namespace) ({leading}) < 1 or absent({leading})"
    assert of_release[:-1] == ALERTS[:-1]
