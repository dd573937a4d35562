"""What the operator connects to, against the chart's NetworkPolicy."""

from __future__ import annotations

import json

from speculative_operator.api.names import PORT_HTTP_NUMBER, PORT_SPECULATION_NUMBER
from tests.e2e.conftest import Operator
from tests.support.api import until
from tests.support.connections import connected_ports
from tests.support.helm import of_kind, rendered
from tests.support.kubectl import Kubectl
from tests.support.release import LiveModel


def test_the_operator_connects_to_nothing_that_its_network_policy_shuts(
    operator: Operator, kubectl: Kubectl, namespace: str
) -> None:
    """No policy is enforced on the local node, so the connections that are open are looked at for
    as long as a revision is tried: one that was closed is seen for a minute more.

    The pod sees the API server's Service, a policy the port behind it, and the policy allows both.
    """
    (policy,) = of_kind(rendered(networkPolicy={"enabled": True}), "NetworkPolicy")
    to_api_server, to_engines = (
        {port["port"] for port in rule["ports"]} for rule in policy["spec"]["egress"]
    )
    connected: set[int] = set()
    model = LiveModel(kubectl, namespace)

    def has_tried_it() -> bool:
        for pod in operator.pods():
            connected.update(connected_ports(pod))
        return to_engines <= connected and model.is_settled()

    model.patch({"runtime": {"env": [{"name": "ANY", "value": "tried"}]}})
    until("a revision is tried and the engines are read", has_tried_it, timeout=120, interval=1)
    slices = json.loads(
        kubectl(
            "get", "endpointslices", "--namespace=default",
            "--selector=kubernetes.io/service-name=kubernetes", "--output=json",
        )
    )  # fmt: skip
    behind = {port["port"] for each in slices["items"] for port in each["ports"]}
    model.delete()

    assert to_engines == {PORT_HTTP_NUMBER, PORT_SPECULATION_NUMBER}
    assert connected <= to_api_server | to_engines
    assert connected & to_api_server
    assert behind
    assert behind <= to_api_server
