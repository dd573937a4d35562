"""At the end of the run: has the operator used all that the chart grants it?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local import audit, install
from local.access import ClusterAccess
from tests.support import rights
from tests.support.helm import CHART, RELEASE, rendered

pytestmark = [pytest.mark.alone, pytest.mark.last]

ACCOUNT = f"system:serviceaccount:{install.NAMESPACE}:{RELEASE}"
NAMESPACES_OF_A_WHOLE_RUN = 8
"""In which the operator has made Deployments; fewer mean that only some of tests/e2e were run."""


def test_every_right_of_the_operator_was_used_or_is_explained(cluster: ClusterAccess) -> None:
    """What nobody needs is what an attacker gets for nothing.

    Each right that the API server did not see used has a line `# not seen in tests: VERB RESOURCE:
    WHY` in the template.
    """
    if not cluster.is_local:
        pytest.skip("reads the audit log of the local cluster")
    asked = [
        request
        for request in audit.requests(datetime.fromtimestamp(0, UTC))
        if request.user == ACCOUNT
    ]
    places = {
        request.namespace
        for request in asked
        if (request.verb, request.resource) == ("create", "deployments")
    }
    if len(places) < NAMESPACES_OF_A_WHOLE_RUN:
        pytest.skip(f"the operator was at work in {len(places)} namespaces only: run `make test`")

    granted = rights.granted(rights.rules_of(RELEASE, rendered(rbac={"capacity": True})))
    unused = granted - rights.used(asked, ACCOUNT)
    template = (CHART / "templates" / "_helpers.tpl").read_text()

    assert sorted(map(str, unused - set(rights.explained(template)))) == []
