"""The main job on a real vLLM: serve, settle on the best K, fall back, come back.

One model goes through all of it, since a real engine takes about a minute to start.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import yaml

from local import model_volume
from local.paths import CHECKOUT
from speculative_operator.tuning.memory import from_data
from speculative_operator.tuning.window import LEAST_DRAFTS
from tests.e2e.conftest import Operator
from tests.support.api import KubernetesApi, Manifest, condition, is_true, until
from tests.support.goodput import goodput, page
from tests.support.models import QUICK_PROBES
from tests.support.served import Served, apply
from tests.support.shares import Stretch, judge
from tests.support.traffic import traffic

pytestmark = [pytest.mark.alone, pytest.mark.timeout(420)]

Holds = Callable[[Manifest], bool]

CLIENTS = 4
FEW = 2
"""While an engine is started on the same two cores."""
WINDOW_SECONDS = 5.0
TRACE = (
    ("one request", 1, 0.0, 15),
    ("eight requests", 8, 0.0, 15),
    ("eight requests, half foreseen", 8, 0.1, 15),
    ("eight requests, hardly foreseen", 8, 1.0, 15),
    ("one request again", 1, 0.0, 15),
)
"""Phases: name, clients, temperature, seconds. The warmer, the less of the target a draft foresees.
"""

PROMPTS = ("the quick brown fox", "zero one two three", "def main(argv):", "an operator watches")


@pytest.fixture(scope="module")
def claim(api: KubernetesApi, place: str, operator: Operator) -> str:
    """A namespace with a claim to the tiny models."""
    del operator
    for manifest in model_volume.manifests(place):
        api.apply(manifest, place)
    return place


@pytest.fixture(scope="module")
def tiny(api: KubernetesApi, claim: str) -> Served:
    """The local example as a user applies it, started at K=4 with the noisy draft."""
    return apply(api, claim, _local_example())


@pytest.fixture(scope="module")
def plain(api: KubernetesApi, claim: str) -> Served:
    """The same target without speculation."""
    manifest = _local_example()
    manifest["metadata"]["name"] = "plain"
    manifest["spec"]["speculation"] = {"method": "none"}
    return apply(api, claim, manifest)


def test_the_local_example_becomes_pods_on_gpus_and_answers_by_its_cluster_name(
    tiny: Served, plain: Served
) -> None:
    """The first thing that a user does; in-cluster clients know only the name."""
    plain.status()
    tiny.wait_ready()
    limits = tiny.pod()["spec"]["containers"][0]["resources"]["limits"]

    answer = tiny.ask_inside(
        "/v1/completions", {"model": tiny.name, "prompt": PROMPTS[0], "max_tokens": 8}
    )

    assert limits["amd.com/gpu"] == "1"
    assert answer["usage"]["completion_tokens"] == 8
    assert [name["id"] for name in tiny.ask_inside("/v1/models")["data"]] == [tiny.name]


def test_greedy_output_with_speculation_is_that_without(tiny: Served, plain: Served) -> None:
    """The target model alone decides the output: float32, one request at a time."""
    tiny.wait_ready()
    plain.wait_ready()

    speculative = [tiny.complete(prompt) for prompt in PROMPTS]
    autoregressive = [plain.complete(prompt) for prompt in PROMPTS]

    assert speculative == autoregressive
    assert plain.status()["mode"] == "Autoregressive"
    plain.api.delete("SpeculativeModel", plain.namespace, plain.name)


def test_under_steady_load_it_settles_on_one_or_two_and_stays(tiny: Served) -> None:
    """At K=4 the noisy draft costs more than it brings; the best K is 1 or 2, without a restart."""
    tiny.wait_ready()
    pod = tiny.pod()["metadata"]["uid"]
    first = page(tiny.address())

    with traffic(tiny.url(), tiny.name, CLIENTS) as report:
        tiny.wait("K is 1 or 2", _length_in({1, 2}), timeout=120)
        lengths = _lengths_during(tiny, windows=10)

    print("\ngoodput by K, tokens/s ± standard error (timed steps):")
    for found in goodput(first, page(tiny.address())):
        print(f"  {found}")
    assert lengths <= {1, 2}
    assert tiny.pod()["metadata"]["uid"] == pod
    assert tiny.pod()["status"]["containerStatuses"][0]["restartCount"] == 0
    assert report.failed == 0, report.failures
    tiny.wait_told("ProposalLengthChanged")


def test_an_identical_draft_is_promoted_for_its_output_and_its_speed(tiny: Served) -> None:
    """The trial on a real engine, beside the running one, under load."""
    tiny.wait_ready()
    with traffic(tiny.url(), tiny.name, FEW) as report:
        _change_draft(tiny, "draft-same", trialSharePercent=50)

    tiny.wait_told("Promoted")
    told = tiny.messages("Promoted")[-1]
    print("\n", told)
    assert report.failed == 0, report.failures
    assert "the new one with it in 6 of these" in told
    assert "It keeps up" in told


@pytest.mark.long
def test_over_a_trace_with_shifts_it_makes_nearly_the_tokens_of_an_oracle(tiny: Served) -> None:
    """One run, judged by its own interleaved measurements: a second run would meet another
    machine. Short windows, for phases of seconds instead of minutes."""
    tiny.wait_ready()
    tiny.change({"tuning": {"window": {"drafts": 50, "minSeconds": 1}}})

    stretches = [_phase(tiny, *phase) for phase in TRACE]
    tiny.change({"tuning": {"window": {"drafts": None, "minSeconds": 5}}})

    judged = judge(stretches)
    print("", *judged.lines, sep="\n  ")
    assert judged.shares.tuned >= 0.9
    assert judged.shares.fixed, "no K was timed at both batch sizes"
    assert judged.shares.tuned > min(judged.shares.fixed.values())


def test_an_unrelated_draft_leads_to_fallback_within_few_windows_of_evidence(
    tiny: Served, record_property: Callable[[str, object], None]
) -> None:
    """Acceptance 0 is pure cost; status and an Event say why speculation is off. K=1 costs next to
    nothing here, less than two cores' noise: what decides is that the draft is told to be faulty.
    """
    _change_draft(tiny, "draft-diff")

    with traffic(tiny.url(), tiny.name, CLIENTS) as report:
        found = tiny.wait("it falls back, and the alarm is raised", _fallen_back, timeout=120)

    healthy = condition(found, "SpeculationHealthy")
    change = next(item for item in found["status"]["decisions"] if item["after"] == 0)
    print(f"\n{change['reason']}: {change['message']}")
    assert healthy["status"] == "False"
    assert healthy["reason"] in ("NoAcceptance", "WeakAcceptance")
    ended = _windows_until_fallback(tiny)
    record_property("told", f"unrelated draft: K=0 in window {ended}")
    assert ended <= 4
    assert report.failed == 0, report.failures
    tiny.wait_told("FellBack")


def _fallen_back(found: Manifest) -> bool:
    unhealthy = condition(found, "SpeculationHealthy").get("status") == "False"
    return unhealthy and found["status"].get("mode") == "Fallback"


def test_a_good_draft_brings_speculation_back(tiny: Served) -> None:
    """The user mends the draft; the new engine starts from its initial K and stays above 0."""
    _change_draft(tiny, "draft-same")

    with traffic(tiny.url(), tiny.name, CLIENTS) as report:
        found = tiny.wait_measured(
            "acceptance is near 1", lambda evidence: float(evidence.get("acceptance", 0)) > 0.9
        )

    assert found["status"]["mode"] == "Speculative"
    assert found["status"]["proposalLength"] > 0
    assert report.failed == 0, report.failures


def test_an_unrelated_draft_is_rolled_back_by_itself_under_load(tiny: Served) -> None:
    """It says the same, and at no K comes near; nobody who sends requests notices."""
    tiny.wait_ready()
    before = tiny.status()["revisions"]["current"]
    with traffic(tiny.url(), tiny.name, FEW) as report:
        tiny.change({**_draft("draft-diff"), "tuning": {"trialSharePercent": 50}})
        tiny.wait("its speed is compared", _speed_is_compared, timeout=120)
        with traffic(tiny.url(), tiny.name, CLIENTS) as more:
            found = tiny.wait("it is rolled back", _rolled_back, timeout=240)

    print("\n", condition(found, "Stalled")["message"])
    assert report.failed == more.failed == 0, report.failures + more.failures
    assert is_true(found, "Ready")
    assert found["status"]["revisions"] == {"current": before, "lastGood": before}
    assert len(tiny.pods()) == 1


def _speed_is_compared(found: Manifest) -> bool:
    return "Its speed is being compared" in condition(found, "Progressing").get("message", "")


def _rolled_back(found: Manifest) -> bool:
    """Promotion ends the waiting, too."""
    reason = condition(found, "Progressing").get("reason")
    assert reason != "Settled", found["status"]["revisions"]
    return bool(reason == "TooSlow")


def _phase(model: Served, name: str, clients: int, temperature: float, seconds: float) -> Stretch:
    """So many clients for so long; all of them are there when the first page is read."""
    address = model.address()
    with traffic(model.url(), model.name, clients, temperature=temperature) as report:
        until("all clients run", lambda: page(address)["running"] == clients, timeout=60)
        before, opened = page(address), time.monotonic()
        until("the phase's end", lambda: time.monotonic() - opened >= seconds, timeout=600)
        after = page(address)
    assert report.failed == 0, report.failures
    return Stretch(name, clients, before, after)


def _local_example() -> Manifest:
    example: Manifest = yaml.safe_load((CHECKOUT / "examples" / "local.yaml").read_text())
    return example


def _draft(draft: str) -> Manifest:
    """A change of the spec to another draft."""
    return {
        "speculation": {"draft": {"source": f"pvc://{model_volume.CLAIM}/{draft}"}},
        "runtime": {"podTemplate": QUICK_PROBES},
        "rollout": {"strategy": "Surge"},
    }


def _change_draft(model: Served, draft: str, **tuning: int) -> None:
    """Another draft, in a new pod: it starts beside the old one, and serves once this returns."""
    old = model.pod()["metadata"]["uid"]
    model.change({**_draft(draft), "tuning": tuning})

    def replaced() -> bool:
        pods = [pod["metadata"]["uid"] for pod in model.pods()]
        return len(pods) == 1 and pods != [old] and is_true(model.resource(), "Ready")

    until("the new pod serves and the old one is told to end", replaced, timeout=240)


def _length_in(wanted: set[int]) -> Holds:
    return lambda found: found.get("status", {}).get("proposalLength") in wanted


def _lengths_during(model: Served, *, windows: int) -> set[int]:
    """K at every look while so many windows close: 5 s each, with enough drafts for evidence."""
    seen: set[int] = set()
    for _ in range(windows):
        drafts, opened = _drafts(model), time.monotonic()

        def closed(drafts: int = drafts, opened: float = opened) -> bool:
            seen.add(int(model.status()["proposalLength"]))
            long_enough = time.monotonic() - opened >= WINDOW_SECONDS
            return long_enough and _drafts(model) - drafts >= LEAST_DRAFTS

        until("a window with evidence", closed, timeout=60, interval=1)
    return seen


def _drafts(model: Served) -> int:
    """All drafts of its engine so far."""
    found = page(model.address())
    return sum(row[found["columns"].index("drafts")] for row in found["rows"])


def _windows_until_fallback(model: Served) -> int:
    """Windows with evidence of this revision until the first change to 0, from the memory."""
    key = model.status()["revisions"]["current"]
    memory = model.api.get("ConfigMap", model.namespace, f"{model.name}-tuning")
    assert memory is not None
    state = from_data(memory.get("data", {}), {}).revisions[key]
    return min(change.window for change in state.changes if change.after == 0)
