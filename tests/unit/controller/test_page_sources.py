"""Where a model's numbers are read: its spec says it, and each reading is counted under it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

import pytest

from speculative_operator.api.tuning import MetricsSource
from speculative_operator.controller.tuner.page_sources import PageSources
from speculative_operator.controller.tuner.ports import Replica
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import Page
from tests.support.tuner_world import World, a_model
from tests.support.windows import a_page

POD = Replica("uid", "pod-1", "10.0.0.1", ready=True, routed=True)
MODEL = a_model(World())


class Engines:
    async def read(self, replica: Replica) -> Page:
        return a_page(method=f"read at {replica.address}")


class Scraped:
    async def read(self, namespace: str, pod: str) -> Page:
        return a_page(method=f"scraped of {namespace}/{pod}", age=7.0)


@pytest.mark.parametrize(
    ("source", "method"),
    [("Pods", "read at 10.0.0.1"), ("Prometheus", "scraped of default/pod-1")],
)
async def test_a_model_is_read_where_its_spec_says(source: str, method: str) -> None:
    """Two models of one operator may differ in it."""
    counted = []

    async def timed(where: str, reading: Awaitable[Page]) -> Page:
        counted.append(where)
        return await reading

    sources = PageSources(Engines(), Scraped(), timed)

    page = await sources.read(replace(MODEL, source=MetricsSource(source)), POD)

    assert (page.method, counted) == (method, [source])


async def test_without_a_prometheus_the_model_is_told_what_to_set() -> None:
    """No evidence, in the condition's message; nothing is read elsewhere in its stead."""

    async def timed(_: str, reading: Awaitable[Page]) -> Page:
        return await reading

    sources = PageSources(Engines(), None, timed)

    with pytest.raises(EngineSilent, match=r"monitoring\.prometheus\.url.*source: Pods"):
        await sources.read(replace(MODEL, source=MetricsSource.PROMETHEUS), POD)
