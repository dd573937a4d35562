"""The product on the real node with engines that behave like the study's rows, in real time."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.access import ClusterAccess
from local.load import LoadReport
from local.simulated_engine.assembly import choose_group
from speculative_operator.controller.seen.times import unix
from speculative_operator.tuning.memory import from_data
from tests.e2e.conftest import Operator
from tests.support import models
from tests.support.api import KubernetesApi, Manifest, condition, until
from tests.support.console import install_cli
from tests.support.goodput import page
from tests.support.served import Served, apply
from tests.support.traffic import traffic

CLIENTS = 4
TARGET, METHOD, WORKLOAD = "Qwen/Qwen3-8B", "eagle3", "gsm8k"
ODD = "ReplicaOutOfLine"


@pytest.fixture(scope="module")
def simulated(api: KubernetesApi, place: str, operator: Operator) -> Served:
    """A model whose engine plays one measured group."""
    del operator
    manifest = models.simulated_model("simulated", target=TARGET, method=METHOD, workload=WORKLOAD)
    served = apply(api, place, manifest)
    served.wait_ready()
    return served


@pytest.fixture(scope="module")
def load(simulated: Served) -> Iterator[LoadReport]:
    """Steady, through all tests but the last: engines without requests are seldom read, so each
    test would begin with a wait for the next reading."""
    with traffic(simulated.url(), simulated.name, CLIENTS) as report:
        yield report


@contextmanager
def unharmed(load: LoadReport) -> Iterator[None]:
    """Requests are answered while the body runs, and none fails."""
    finished, failed = load.finished, load.failed
    yield
    until("requests are answered", lambda: load.finished > finished)
    assert load.failed == failed, load.failures


def test_a_measured_group_ends_at_the_best_live_length(simulated: Served, load: LoadReport) -> None:
    """Within 3% of the best arm's noise-free goodput, found on live traffic alone."""
    group = choose_group(TARGET, METHOD, WORKLOAD)
    goodput = {arm.length: (1 + sum(arm.acceptance)) / arm.cost for arm in group.arms}
    near_best = {k for k, value in goodput.items() if value >= 0.97 * max(goodput.values())}

    with unharmed(load):
        found = simulated.wait(
            f"K is one of {sorted(near_best)} and measured to be the best",
            lambda found: (
                found["status"].get("proposalLength") in near_best
                and condition(found, "Tuned").get("reason") == "BestMeasured"
            ),
            timeout=120,
        )

    print(f"\nK={found['status']['proposalLength']}, best within 3%: {sorted(near_best)}")


def test_a_collapse_of_acceptance_leads_off_and_its_recovery_back_on(
    simulated: Served, load: LoadReport
) -> None:
    """A stale draft, mended later: no latch."""
    with unharmed(load):
        simulated.wait("evidence is there", _mode("Speculative"), timeout=60)
        simulated.world(acceptance=0.02)
        simulated.wait("it falls back", _mode("Fallback"), timeout=120)
        simulated.wait("the alarm is raised", _alarmed, timeout=60)
        simulated.world(acceptance=1.0)
        simulated.wait("speculation is back", _mode("Speculative"), timeout=120)

    simulated.wait_told("FellBack", "SpeculationResumed")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("truncated", "MetricsInvalid"),
        ("nan", "MetricsInvalid"),
        ("two-models", "MetricsInvalid"),
        ("unreachable", "MetricsUnreachable"),
    ],
)
def test_pages_that_cannot_be_trusted_change_nothing_and_are_named(
    simulated: Served, load: LoadReport, fault: str, reason: str
) -> None:
    """No evidence is not zero: acceptance of nothing would read as a dead draft."""
    with unharmed(load):
        simulated.wait("it speculates", _mode("Speculative"), timeout=60)
        simulated.world(page=fault)
        before = simulated.wait(
            f"Tuned says {reason}",
            lambda found: condition(found, "Tuned").get("reason") == reason,
            timeout=60,
        )
        finished = load.finished
        until("traffic goes on meanwhile", lambda: load.finished > finished + 20)
        found = simulated.resource()
        simulated.world(page="none")
        simulated.wait(
            "the pages are read again",
            lambda found: condition(found, "Tuned").get("reason") != reason,
            timeout=60,
        )

    assert found["status"]["schedule"] == before["status"]["schedule"]
    assert found["status"]["mode"] == "Speculative"


def test_counters_that_start_at_zero_again_are_no_evidence(
    simulated: Served, load: LoadReport
) -> None:
    """An engine core that was replaced would else read as negative drafts."""
    with unharmed(load):
        simulated.wait("it speculates", _mode("Speculative"), timeout=60)
        simulated.world(page="reset")
        reset_at = _now()
        found = simulated.wait_measured(
            "evidence after the reset", lambda evidence: evidence.get("measuredAt", "") > reset_at
        )

    assert found["status"]["mode"] == "Speculative"
    assert 0 < float(found["status"]["evidence"]["acceptance"]) <= 1


def test_a_killed_operator_changes_nothing_and_the_next_goes_on_from_the_same_length(
    simulated: Served, load: LoadReport, operator: Operator
) -> None:
    """Pods serve without the operator; what was learned is in the cluster."""
    with unharmed(load):
        simulated.wait("it speculates", _mode("Speculative"), timeout=60)
        pod, before = simulated.pod(), simulated.status()
        begun, table = time.time(), json.loads(simulated.schedule())["table"]
        operator.kill()
        killed_at = _now()
        taken_up = json.loads(simulated.schedule())["table"]
        after = simulated.wait_measured(
            "the new operator has measured",
            lambda evidence: evidence.get("measuredAt", "") > killed_at,
        )

    now = simulated.pod()
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert now["status"]["containerStatuses"] == pod["status"]["containerStatuses"]
    decided = [entry["table"] for entry in _history(simulated) if entry["t"] >= begun]
    assert taken_up in [table, *decided]
    assert page(simulated.address())["hash_in_force"] is not None
    kept = [{**each, "outcome": None} for each in after["status"]["decisions"]]
    assert {**before["decisions"][0], "outcome": None} in kept


def test_kubectl_speculation_explains_reports_and_replays(
    simulated: Served, load: LoadReport, cluster: ClusterAccess, tmp_path: Path
) -> None:
    """The installed console script, found by kubectl, on what the operator has written."""
    speculation = install_cli(tmp_path / "installed", cluster.kubeconfig)
    with unharmed(load):
        simulated.wait(
            "the status has alternatives",
            lambda found: bool(found["status"]["evidence"].get("alternatives")),
            timeout=90,
        )
    where = (simulated.name, "-n", simulated.namespace)
    page = tmp_path / "report.html"

    explained = speculation("explain", *where)
    reported = speculation("report", *where, "-o", str(page))
    replayed = speculation("replay", *where)
    unknown = speculation("explain", "no-such-model", "-n", simulated.namespace)

    print(explained.stdout)
    assert explained.returncode == reported.returncode == replayed.returncode == 0, explained.stderr
    assert f"{simulated.namespace}/{simulated.name}  Speculative" in explained.stdout
    assert "why not" in explained.stdout
    assert page.read_text().count("<svg") == 4
    assert "It would have played the same." in replayed.stdout
    assert unknown.returncode == 1
    assert "there is no SpeculativeModel no-such-model" in unknown.stderr


def test_of_two_replicas_the_one_with_a_broken_draft_is_named_and_kept_out(
    simulated: Served, load: LoadReport
) -> None:
    """A stale draft on one node must not decide for the others. It is to be named by the end of the
    third window that shows it; that in which it breaks does so only in part."""
    simulated.change({"replicas": 2})
    simulated.wait_ready()
    with unharmed(load), traffic(simulated.url(), simulated.name, CLIENTS):
        before = simulated.wait("both are sound", _sound_pair, timeout=60)
        _, odd = simulated.pods()
        broken_at = time.time()
        simulated.world(address=odd["status"]["podIP"], acceptance=0.0)
        found = simulated.wait("the odd one is named", _odd_one_named, timeout=30)
        measured = found["status"]["evidence"]["measuredAt"]
        after = simulated.wait_measured(
            "windows without it", lambda evidence: evidence["measuredAt"] > measured
        )
        healthy = condition(found, "SpeculationHealthy")
        simulated.wait_told(ODD)
        told = (unix(e["eventTime"]) for e in simulated.events() if e["reason"] == ODD)
        named_at = min(at for at in told if at > broken_at)
        ends = [entry["t"] for entry in _history(simulated) if "window" in entry]
        windows = [at for at in ends if broken_at < at < named_at]

    print(f"\nnamed {named_at - broken_at:.0f} s and {len(windows)} windows after it broke")
    assert odd["metadata"]["name"] in healthy["message"]
    assert len(windows) <= 1 + 3 + 1, "windows of a second: one may close while the Event is sent"
    assert after["status"]["mode"] == "Speculative"
    # Of single windows; with the odd one it would be half.
    assert _acceptance(after) == pytest.approx(_acceptance(before), rel=0.3)


def _alarmed(found: Manifest) -> bool:
    return bool(condition(found, "SpeculationHealthy").get("status") == "False")


def _sound_pair(found: Manifest) -> bool:
    """Both replicas have been read and the tuner speculates."""
    tunable = [pod.get("tunable") for pod in found["status"].get("replicaDetails", [])]
    return tunable == [True, True] and condition(found, "SpeculationHealthy")["reason"] == "Healthy"


def _odd_one_named(found: Manifest) -> bool:
    return bool(condition(found, "SpeculationHealthy").get("reason") == "ReplicaOutOfLine")


def _acceptance(found: Manifest) -> float:
    return float(found["status"]["evidence"]["acceptance"])


def _history(model: Served) -> list[dict[str, Any]]:
    """What was decided on, oldest first. A look makes the operator save it now."""
    annotations = {"speculation.dev/look": str(time.time())}
    model.api.merge(
        "SpeculativeModel", model.namespace, model.name, {"metadata": {"annotations": annotations}}
    )
    asked = annotations["speculation.dev/look"]

    def saved() -> list[dict[str, Any]]:
        kept = model.api.get("ConfigMap", model.namespace, f"{model.name}-tuning") or {}
        binary = {name: base64.b64decode(data) for name, data in kept.get("binaryData", {}).items()}
        memory = from_data(kept.get("data", {}), binary)
        obeyed = any(state.asked == asked for state in memory.revisions.values())
        return [json.loads(line) for line in memory.history] if obeyed else []

    return until("the look is saved", saved, timeout=30)


def test_a_model_deleted_while_the_operator_is_down_is_gone(
    simulated: Served, operator: Operator
) -> None:
    """No finalizer: deletion needs nobody of ours."""
    namespace = simulated.namespace
    with operator.away():
        simulated.api.delete("SpeculativeModel", namespace, simulated.name)
        until(
            "model and pods are gone",
            lambda: (
                not simulated.api.all("SpeculativeModel", namespace)
                and not simulated.api.all("Pod", namespace)
            ),
            timeout=60,
        )


def _now() -> str:
    """As status writes a time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _mode(wanted: str) -> Callable[[Manifest], bool]:
    return lambda found: bool(found.get("status", {}).get("mode") == wanted)
