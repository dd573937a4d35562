"""The tuner on what Prometheus has scraped, beside the same traffic read from the engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from local.simulated_engine.assembly import choose_group
from local.simulated_engine.faults import PageUnreachable
from local.virtual_time.clock import EPOCH
from local.virtual_time.scene import Scene, play
from speculative_operator.api.conditions import EventReason, Reason
from speculative_operator.controller.tuner.ports import Replica, TunedModel
from speculative_operator.engine.series import page_of
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import Page
from tests.support.scrapes import Scrapes

GROUP = choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k")
CLIENTS = 16

Script = Callable[[Scene], Awaitable[None]]


class Prometheus:
    """Scrapes a scene's engines every so many seconds, each at a moment of its own, or where
    `interval` is 0 just when it is asked; answers the tuner unless it is `out`."""

    def __init__(self, scene: Scene, interval: float) -> None:
        self.out = False
        self._engines = scene.engines
        self._interval = interval
        self._scrapes = Scrapes()

    async def run(self) -> None:
        """Until cancelled."""
        each = self._interval / len(self._engines)
        while each:
            for uid in self._engines:
                with suppress(PageUnreachable):
                    self._scrape(uid)
                await asyncio.sleep(each)

    def _scrape(self, uid: str) -> None:
        now = asyncio.get_running_loop().time()
        self._scrapes.scrape(self._engines[uid].metrics(now), EPOCH + now, pod=uid)

    async def read(self, model: TunedModel, replica: Replica) -> Page:
        del model
        if self.out:
            raise EngineSilent("Prometheus is away")
        if not self._interval:
            self._scrape(replica.name)
        now = EPOCH + asyncio.get_running_loop().time()
        return page_of(self._scrapes.samples(replica.name, now), now)


def play_scraped(scene: Scene, interval: float, script: Callable[[Prometheus], Script]) -> None:
    """The script, with the tuner reading what is scraped at this interval."""
    scene.pages = prometheus = Prometheus(scene, interval)

    async def scraped(scene: Scene) -> None:
        scraping = asyncio.create_task(prometheus.run())
        try:
            await script(prometheus)(scene)
        finally:
            scraping.cancel()

    play(scene, scraped)


async def collapse_and_recover(scene: Scene) -> list[int]:
    """K at the end of a healthy draft, of a dead one, and of a healthy one again."""
    found = []
    for acceptance, seconds in ((1.0, 200), (0.0, 150), (1.0, 500)):
        scene.change(acceptance=acceptance)
        scene.send(CLIENTS)
        await scene.pass_seconds(seconds)
        found.append(scene.length(CLIENTS))
    return found


def test_the_decisions_are_those_of_reading_the_pods(tmp_path: Path) -> None:
    """All of them, at the same times and with the same evidence: what Prometheus has of a page is
    as good as the page."""

    def by_prometheus(_: Prometheus) -> Script:
        return played

    async def played(scene: Scene) -> None:
        await collapse_and_recover(scene)

    read, scraped = Scene(GROUP, tmp_path / "read"), Scene(GROUP, tmp_path / "scraped")
    play(read, played)
    play_scraped(scraped, 0, by_prometheus)

    assert len(read.schedules.written) > 5
    assert scraped.schedules.written == read.schedules.written
    assert scraped.view.decisions == read.view.decisions
    assert scraped.view.evidence == read.view.evidence


@pytest.mark.parametrize(("interval", "replicas"), [(5, 1), (30, 2)])
def test_scrapes_that_are_seldom_lead_to_a_length_as_good(
    interval: float, replicas: int, tmp_path: Path
) -> None:
    """What a page tells comes later, so windows end at other moments: what is best is best for
    both, and a dead draft is left by both."""
    read: list[int] = []
    scraped: list[int] = []

    async def direct(scene: Scene) -> None:
        read.extend(await collapse_and_recover(scene))

    def by_prometheus(_: Prometheus) -> Script:
        async def script(scene: Scene) -> None:
            scraped.extend(await collapse_and_recover(scene))

        return script

    play(Scene(GROUP, tmp_path / "read", replicas=replicas), direct)
    scene = Scene(GROUP, tmp_path / "scraped", replicas=replicas)
    play_scraped(scene, interval, by_prometheus)

    best = {
        k
        for k in scene.policy.arms
        if scene.goodput(k, CLIENTS) >= 0.97 * scene.goodput(scene.best(CLIENTS), CLIENTS)
    }
    for found in (read, scraped):
        healthy, dead, again = found
        assert (healthy in best, dead, again in best) == (True, 0, True), (read, scraped)
    reasons = {notice.reason for _, notice in scene.record.notices}
    assert EventReason.SCHEDULE_NOT_APPLIED not in reasons
    assert EventReason.ENGINE_HANGS not in reasons
    assert EventReason.REPLICA_OUT_OF_LINE not in reasons
    assert max(scene.schedules.attempts) == 1


def test_an_outage_of_prometheus_is_no_evidence(tmp_path: Path) -> None:
    """Nothing is decided, K stays, and the condition names it; the evidence of before stands."""

    def script(prometheus: Prometheus) -> Script:
        async def play_it(scene: Scene) -> None:
            scene.send(CLIENTS)
            await scene.pass_seconds(300)
            before, written = scene.view, len(scene.schedules.written)
            prometheus.out = True
            await scene.pass_seconds(300)
            during, still = scene.view, len(scene.schedules.written)
            prometheus.out = False
            await scene.pass_seconds(120)

            assert during.tuned.reason is Reason.METRICS_UNREACHABLE
            assert (during.table, during.evidence) == (before.table, before.evidence)
            assert during.decisions == before.decisions
            assert still == written
            assert scene.view.tuned.reason is not Reason.METRICS_UNREACHABLE
            assert scene.view.evidence != before.evidence

        return play_it

    play_scraped(Scene(GROUP, tmp_path), 15, script)


def test_an_engine_that_hangs_is_found(tmp_path: Path) -> None:
    """From two scrapes a minute apart at which it had requests and had made no step."""

    def script(_: Prometheus) -> Script:
        async def play_it(scene: Scene) -> None:
            scene.send(CLIENTS)
            await scene.pass_seconds(120)
            assert not scene.view.hung
            scene.change(hung=True)
            await scene.pass_seconds(150)
            assert set(scene.view.hung) == {"pod-0"}

        return play_it

    play_scraped(Scene(GROUP, tmp_path), 30, script)
