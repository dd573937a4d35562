"""The operator's page of metrics as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client import disable_created_metrics, enable_created_metrics, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from speculative_operator import __version__
from speculative_operator.api.conditions import EventReason
from speculative_operator.cluster.client import Refused
from speculative_operator.cluster.manifests import Reference
from speculative_operator.cluster.queue import BackOff, Done, Outcome, WorkQueue
from speculative_operator.controller.metrics.described import (
    OF_MODELS,
    OF_OPERATOR,
    OPERATOR_PREFIX,
)
from speculative_operator.controller.metrics.metrics import Metrics
from speculative_operator.controller.tuner.fleet import ModelTold
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import Page
from speculative_operator.tuning.tally import Regret, Tally
from speculative_operator.tuning.verdict import Evidence
from tests.unit.controller.test_model_metrics import MODEL, STATE, a_view, an_alternative


@pytest.fixture(autouse=True)
def as_in_the_operator() -> Iterator[None]:
    """Its process leaves out when each counter began."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    yield
    enable_created_metrics()  # type: ignore[no-untyped-call]


def exported(metrics: Metrics) -> dict[str, Metric]:
    """The families of the page that are our own, by name."""
    text = generate_latest(metrics.registry).decode()
    return {
        family.name: family
        for family in text_string_to_metric_families(text)
        if family.name.startswith(OPERATOR_PREFIX)
    }


def values(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """A family's samples by the values of their labels, buckets and sums left out."""
    return {
        tuple(sample.labels.values()): sample.value
        for sample in exported(metrics)[f"{OPERATOR_PREFIX}_{name}"].samples
        if not sample.name.endswith(("_bucket", "_sum"))
    }


async def everything() -> Metrics:
    """A page on which nothing is missing."""
    metrics = Metrics()
    metrics.watch_queue(WorkQueue[Reference](lambda: 0.0))
    metrics.watch_lease(lambda: ("uid", 3))
    view = a_view(
        evidence=Evidence(1.0, 100, 0.7, 2.1, (0.7,), 900.0, 1.4),
        alternatives=(an_alternative(),),
        tally=Tally({EventReason.FELL_BACK: 1}, 1, Regret(5.0, 6.0)),
    )
    metrics.watch_models(lambda: (ModelTold(MODEL, STATE, view),))
    metrics.request("GET", "Pod", 200)
    metrics.failed(Refused("GET /", 403, "Forbidden", "no"))
    await metrics.timed(done)(MODEL)
    with pytest.raises(EngineSilent):
        await metrics.timed_read("Pods", no_page())
    return metrics


async def done(_: Reference) -> Outcome:
    return Done()


async def no_page() -> Page:
    raise EngineSilent("nobody there")


async def test_what_is_described_is_what_is_exported() -> None:
    """The reference and the dashboards are made from the descriptions."""
    found = exported(await everything())

    described = {of.name: of for of in (*OF_OPERATOR, *OF_MODELS)}
    assert found.keys() == described.keys()
    for name, of in described.items():
        assert (found[name].type, found[name].documentation) == (of.kind, of.meaning)
        for sample in found[name].samples:
            assert set(sample.labels) - {"le"} == set(of.labels), sample


async def test_names_follow_the_conventions_of_prometheus() -> None:
    """promtool's own check is run on the real page; it does not know our prefix."""
    for of in (*OF_OPERATOR, *OF_MODELS):
        assert of.name.startswith(f"{OPERATOR_PREFIX}_")
        assert not of.name.endswith(("_total", "_ms", "_percent", "_count", "_sum", "_bucket"))
        assert of.meaning.endswith(".")
        assert "position" not in of.labels


def test_which_operator_it_is() -> None:
    """After an upgrade both versions are seen."""
    assert values(Metrics(), "build_info") == {(__version__,): 1}


@pytest.mark.parametrize(("term", "leading"), [(None, 0), (("uid", 3), 1)])
def test_a_standby_says_that_it_does_not_lead(term: tuple[str, int] | None, leading: int) -> None:
    """Its sum over all replicas is 1 while somebody leads."""
    metrics = Metrics()
    metrics.watch_lease(lambda: term)

    assert values(metrics, "leading") == {(): leading}
    assert values(metrics, "lease_transitions") == ({(): 3} if leading else {})


def test_errors_are_counted_by_class() -> None:
    """A fault of the operator's own is told from what the cluster refuses."""
    metrics = Metrics()
    for error in (Refused("GET /", 403, "", ""), KeyError("x"), KeyError("y")):
        metrics.failed(error)

    found = values(metrics, "reconcile_errors")
    assert {name: count for (name,), count in found.items()} == {
        "NotOurs": 0,
        "Contested": 0,
        "NotAllowed": 0,
        "ClusterFault": 0,
        "Refused": 1,
        "Unexpected": 2,
    }


async def test_a_queue_shows_what_waits_and_what_has_failed() -> None:
    """A model whose passes fail is looked at more and more seldom."""
    metrics, queue = Metrics(), WorkQueue[Reference](lambda: 0.0)
    metrics.watch_queue(queue)
    queue.add(MODEL)
    assert values(metrics, "queue_length") == {(): 1}

    async def fails(_: Reference) -> Outcome:
        assert values(metrics, "queue_working") == {(): 1}
        running.cancel()
        return BackOff()

    running = asyncio.create_task(queue.run(fails, workers=1))
    await asyncio.wait([running])

    assert values(metrics, "queue_length") == values(metrics, "queue_working") == {(): 0}
    assert values(metrics, "queue_failing") == {(): 1}


@pytest.mark.parametrize(
    ("silence", "outcome"),
    [(EngineSilent("x"), "silent"), (PageUnreadable("x"), "unreadable")],
)
async def test_a_reading_without_a_page_is_counted_as_such(
    silence: EngineSilent, outcome: str
) -> None:
    """Silence of many engines at once is a fault of the network, not of one."""
    metrics = Metrics()

    async def read() -> Page:
        raise silence

    with pytest.raises(EngineSilent):
        await metrics.timed_read("Pods", read())

    found = values(metrics, "engine_read_seconds")
    assert {tuple(sorted(key)) for key in found} == {tuple(sorted(("Pods", outcome)))}
