"""The chart's NetworkPolicies, against what the operator's own code connects to."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.names import PORT_HTTP_NUMBER, PORT_SPECULATION_NUMBER
from speculative_operator.plan.names import Owner
from speculative_operator.resources.metadata import labels
from tests.support.helm import RELEASE, RELEASE_NAMESPACE, Manifest, of_kind, render, rendered

MONITORS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def network_policies(**values: Any) -> dict[tuple[str, str], Manifest]:
    """The specs of the policies by namespace and name."""
    return {
        (policy["metadata"]["namespace"], policy["metadata"]["name"]): policy["spec"]
        for policy in of_kind(rendered(**values), "NetworkPolicy")
    }


def test_the_network_policy_lets_out_to_engines_and_api_server_alone() -> None:
    """The engines' ports are those that the operator's own code asks, and their pods its own."""
    assert network_policies() == {}
    policies = network_policies(networkPolicy={"enabled": True})
    (policy,) = policies.values()
    api_server, engines = policy["egress"]
    owner = Owner("qwen", "prod", "uid")
    selector = engines["to"][0]["podSelector"]["matchLabels"]

    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert api_server == {"ports": [{"port": 443}, {"port": 6443}]}
    assert engines["ports"] == [{"port": PORT_HTTP_NUMBER}, {"port": PORT_SPECULATION_NUMBER}]
    assert selector.items() <= labels(owner, "engine").items()
    assert engines["to"][0]["namespaceSelector"] == {}
    assert policy["ingress"] == [{"ports": [{"port": "metrics"}]}]


def test_the_network_policy_knows_no_namespace_that_is_not_listed() -> None:
    """Whoever lists namespaces wants the operator nowhere else."""
    policy = network_policies(
        namespaces=["one", "two"],
        networkPolicy={
            "enabled": True,
            "apiServer": {"ports": [6443], "cidrs": ["10.0.0.1/32"]},
            "egress": [{"to": MONITORS, "ports": [{"port": 9090}]}],
            "metricsFrom": MONITORS,
        },
    )[RELEASE_NAMESPACE, RELEASE]
    api_server, engines, prometheus = policy["egress"]

    assert api_server == {
        "ports": [{"port": 6443}],
        "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
    }
    (named,) = engines["to"][0]["namespaceSelector"]["matchExpressions"]
    assert named["values"] == ["one", "two"]
    assert prometheus["ports"] == [{"port": 9090}]
    assert policy["ingress"][0]["from"] == MONITORS


def test_engines_that_are_shut_off_can_let_the_operator_in() -> None:
    """A namespace that denies by default would leave the tuner without evidence."""
    policies = network_policies(namespaces=["one", "two"], networkPolicy={"engines": True})

    assert set(policies) == {("one", f"{RELEASE}-engines"), ("two", f"{RELEASE}-engines")}
    for policy in policies.values():
        assert policy["policyTypes"] == ["Ingress"]
        (rule,) = policy["ingress"]
        (peer,) = rule["from"]
        assert peer["namespaceSelector"]["matchLabels"] == {
            "kubernetes.io/metadata.name": RELEASE_NAMESPACE
        }
        assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == RELEASE


def test_whoever_else_needs_the_engines_is_let_in_beside_the_operator() -> None:
    """Else the policy would shut out who sends requests, and the Prometheus that reads metrics."""
    policies = network_policies(
        namespaces=["one"], networkPolicy={"engines": True, "enginesFrom": MONITORS}
    )
    (rule,) = policies["one", f"{RELEASE}-engines"]["ingress"]

    assert len(rule["from"]) == 2
    assert rule["from"][1:] == MONITORS


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"networkPolicy": {"engines": True}},
            "Fill it, or set networkPolicy.engines: false.",
        ),
        (
            {"namespaces": ["one"], "networkPolicy": {"enginesFrom": MONITORS}},
            "Set that to true, or leave enginesFrom out.",
        ),
        (
            {
                "networkPolicy": {"enabled": True},
                "monitoring": {"prometheus": {"url": "http://prometheus:9090"}},
            },
            "networkPolicy.egress: the policy would shut the operator off",
        ),
    ],
)
def test_policies_that_cannot_be_meant_say_what_to_write(
    values: dict[str, Any], words: str
) -> None:
    """One in every namespace cannot be written; one without a way to Prometheus stops tuning."""
    answer = render(**values)

    assert not answer.done
    assert words in answer.complaint
