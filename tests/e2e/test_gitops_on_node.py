"""Operator and model installed by GitOps, with Flux's own apply and wait, on the real node."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from local import audit, images, install
from local.access import ClusterAccess
from tests.conftest import RUN_LABEL
from tests.support import models
from tests.support.api import KubernetesApi, is_true, until
from tests.support.gitops import AGENT, Flux, Repository, flux
from tests.support.helm import CHART, RELEASE, RELEASE_NAMESPACE, helm, on, rendered
from tests.support.kubectl import Kubectl
from tests.support.lua import argo_health
from tests.support.served import Served, settle

pytestmark = pytest.mark.timeout(300)  # seconds: the first one waits for the operator and an engine

SCRIPT = CHART.parents[1] / "examples" / "gitops" / "argo-cd" / "health.lua"
OPERATOR = f"system:serviceaccount:{RELEASE_NAMESPACE}:{RELEASE}"
NAME = "by-gitops"
RECONCILIATIONS = 10

Manifest = dict[str, Any]


@dataclass
class Delivery:
    """A repository, what Flux makes of it, and the model in it."""

    repository: Repository
    flux: Flux
    served: Served
    namespace: Manifest
    chart: tuple[Manifest, ...]
    model: Manifest = field(default_factory=dict)

    def push(self, **spec: Any) -> str:
        """Commits the model with sections laid over its spec; the hash."""
        sections = {**self.model["spec"], **spec}
        changed = {**self.model, "spec": sections}
        return self.repository.commit(model=[changed])

    def argo_health(self) -> str:
        """What Argo CD would say of the model now."""
        return argo_health(SCRIPT, self.served.resource()).status


@pytest.fixture(scope="module")
def delivery(
    cluster: ClusterAccess,
    api: KubernetesApi,
    kubectl: Kubectl,
    run: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Delivery]:
    """One commit with the chart's output, a namespace and a model, where Helm's release was."""
    if not cluster.is_local:
        pytest.skip("replaces the operator of the whole cluster")
    taken = helm("uninstall", RELEASE, f"--namespace={RELEASE_NAMESPACE}", "--wait", *on(cluster))
    assert taken.done, taken.complaint
    # Its rights went with the operator, so it could not give its Lease back.
    kubectl("delete", "lease", "--all", f"--namespace={RELEASE_NAMESPACE}")
    place = f"gitops-{run}"
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": place, "labels": {RUN_LABEL: run}},
    }
    references = {name: images.reference(name) for name in images.PROJECT_IMAGES}
    chart = tuple(
        each
        for each in rendered(**install.values(references))
        if "helm.sh/hook" not in each["metadata"].get("annotations", {})
    )
    model = models.simulated_model(NAME, replicas=1)
    model["metadata"]["namespace"] = place
    folder = tmp_path_factory.mktemp("gitops")
    (folder / "repository").mkdir()
    repository = Repository(folder / "repository")
    repository.commit(operator=chart, namespace=[namespace], model=[model])
    with flux(cluster, repository, folder, timeout="20s") as running:
        served = Served(api, place, NAME)
        yield Delivery(repository, running, served, namespace, chart, model)
    kubectl("delete", "namespace", place, "--wait=false")
    kept = [each for each in chart if each["kind"] != "CustomResourceDefinition"]
    kubectl("delete", "--filename=-", "--ignore-not-found", objects=tuple(kept))
    install.install()


def test_a_commit_is_ready_only_when_operator_and_model_really_are(delivery: Delivery) -> None:
    """What follows in a pipeline asks the model something."""
    ready = delivery.flux.wait("the first commit is ready", lambda each: each.ready, timeout=120)
    model, answer = delivery.served.resource(), delivery.served.complete("Once")

    earlier = delivery.flux.outcomes()[: delivery.flux.outcomes().index(ready)]
    assert {each.reason for each in earlier} <= {"HealthCheckFailed"}
    assert is_true(model, "Ready")
    assert model["status"]["readyReplicas"] == 1
    assert answer
    assert delivery.argo_health() == "Healthy"


def test_ten_reconciliations_write_nothing(delivery: Delivery) -> None:
    """Neither Flux, which finds nothing that differs, nor the operator, whom nobody disturbs."""
    delivery.served.wait_ready()
    settle([delivery.served])
    since = datetime.now(UTC)

    passed = delivery.flux.wait_more(RECONCILIATIONS, timeout=90)

    assert all(each.ready and not each.changed for each in passed)
    seen = list(audit.requests(since))
    dry_runs = [each for each in seen if each.agent == AGENT and each.dry_run]
    assert len(dry_runs) >= RECONCILIATIONS * len(delivery.chart)
    assert not [each for each in seen if each.agent == AGENT and each.writes]
    ours = [each for each in seen if each.user == OPERATOR and each.writes]
    assert not [each for each in ours if each.namespace == delivery.served.namespace]


def test_what_somebody_changes_by_hand_is_put_back(api: KubernetesApi, delivery: Delivery) -> None:
    """In the model, and in what the chart made."""
    namespace = delivery.served.namespace
    before = len(delivery.flux.outcomes())
    wanted = {
        f"SpeculativeModel/{namespace}/{NAME} configured",
        f"Service/{RELEASE_NAMESPACE}/{RELEASE} created",
    }
    api.merge("SpeculativeModel", namespace, NAME, {"spec": {"replicas": 2}})
    api.delete("Service", RELEASE_NAMESPACE, RELEASE)

    def put_back() -> bool:
        seen = delivery.flux.outcomes()[before:]
        sent = {line for each in seen for line in each.changed}
        return sent == wanted and seen[-1].ready and not seen[-1].changed

    until("both are put back, and it is ready", put_back)
    assert delivery.served.resource()["spec"]["replicas"] == 1
    assert api.get("Service", RELEASE_NAMESPACE, RELEASE) is not None


def test_a_changed_commit_is_rolled_out_before_it_is_ready(delivery: Delivery) -> None:
    """Not when the API server has taken it."""
    old = delivery.served.pod()["metadata"]["uid"]
    delivery.model = copy.deepcopy(delivery.model)
    delivery.model["spec"]["model"]["maxNumSeqs"] = 48

    delivery.flux.wait_ready(delivery.push(), timeout=120)

    pod = delivery.served.pod()
    assert pod["metadata"]["uid"] != old
    assert "48" in str(pod["spec"]["containers"])
    assert delivery.served.complete("Once")


def test_a_spec_that_the_api_server_refuses_fails_with_its_words(delivery: Delivery) -> None:
    """What serves goes on, and nothing of the model is changed."""
    before = delivery.served.resource()["metadata"]["generation"]
    commit = delivery.push(speculation={"method": "eagle3"})

    failed = delivery.flux.wait("it fails", lambda each: each.revision == commit)

    assert (failed.ready, failed.reason) == (False, "ReconciliationFailed")
    assert "speculation.draft" in failed.message
    assert delivery.served.resource()["metadata"]["generation"] == before
    assert delivery.argo_health() == "Healthy"


def test_a_spec_that_the_operator_refuses_fails_with_its_words(delivery: Delivery) -> None:
    """At once, and not at the end of the time that a start may take."""
    runtime = copy.deepcopy(delivery.model["spec"]["runtime"])
    runtime["podTemplate"]["spec"]["hostNetwork"] = True
    commit = delivery.push(runtime=runtime)

    failed = delivery.flux.wait("it fails", lambda each: each.revision == commit)

    assert (failed.ready, failed.reason) == (False, "HealthCheckFailed")
    assert f"SpeculativeModel/{delivery.served.namespace}/{NAME} status: 'Failed'" in failed.message
    (why,) = failed.unhealthy
    assert (why.status, why.object) == (
        "Failed",
        f"SpeculativeModel/{delivery.served.namespace}/{NAME}",
    )
    assert "spec.runtime.podTemplate.spec.hostNetwork" in why.message
    assert delivery.argo_health() == "Degraded"
    assert delivery.served.complete("Once")


def test_a_parked_model_is_ready(delivery: Delivery) -> None:
    """Nothing is wanted, so nothing is waited for: else its pipeline would stand still."""
    commit = delivery.push(replicas=0)

    delivery.flux.wait_ready(commit)

    assert delivery.served.pods() == []
    assert delivery.argo_health() == "Suspended"
