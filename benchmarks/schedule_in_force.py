"""From a decision to its schedule in force, on the real node with a simulated engine under load.

The user pins K to another value each time: the tuner's answer to that is the decision that can be
had at will. Every other decision is written and handed on in the same way.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.bare_client import Sightings, watching
from benchmarks.operator_measures import Bench, all_ready
from benchmarks.operator_rows import Row, Spread
from local.load import LoadPlan, load
from speculative_operator.api.names import LABEL_MODEL_UID
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.plan.environment import SCHEDULE_KEY
from speculative_operator.tuning.schedule import schedule_hash
from tests.support.goodput import page
from tests.support.models import simulated_model

NAME = "scheduled"
DECISIONS = 10
CLIENTS = 2
POLL_SECONDS = 0.02
LIMIT_SECONDS = 60.0


async def schedule_in_force(bench: Bench) -> None:
    """Writes two rows: the decision until it is written, and from there until it is in force."""
    manifest = simulated_model(NAME)
    manifest["metadata"]["namespace"] = bench.ours
    async with all_ready(bench, NAME, 1):
        model = await bench.client.create(manifest)
    decided, applied = [], []
    async with (
        watching(bench.configuration, "Pod", bench.ours) as pods,
        watching(bench.configuration, "Service", bench.ours) as services,
        watching(bench.configuration, "ConfigMap", bench.ours) as config_maps,
    ):
        await services.until(lambda: NAME in services.live)
        await pods.until(lambda: bool(_address(pods, model)))
        service = services.live[NAME]["spec"]
        url = f"http://{service['clusterIP']}:{service['ports'][0]['port']}"
        async with load(LoadPlan(url, CLIENTS, DECISIONS * LIMIT_SECONDS, model=NAME)):
            for number in range(DECISIONS):
                before = _schedule(config_maps)
                began = time.perf_counter()
                length = 1 + number % 2
                bounds = {"min": length, "max": length}
                change: dict[str, Any] = {"spec": {"tuning": {"bounds": bounds}}}
                await bench.client.merge(model["kind"], model["metadata"], change)
                await config_maps.until(lambda: _schedule(config_maps) != before)  # noqa: B023
                written = time.perf_counter()
                await _in_force(_address(pods, model), schedule_hash(_schedule(config_maps)))
                decided.append(written - began)
                applied.append(time.perf_counter() - written)
    await bench.client.delete(model["kind"], model["metadata"])
    bench.add(Row("K pinned to schedule written, p50/p95 ms", str(Spread.of(decided))))
    bench.add(Row("schedule written to in force, p50/p95 ms", str(Spread.of(applied))))


async def _in_force(address: str, digest: str) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            if (await asyncio.to_thread(page, address))["hash_in_force"] == digest:
                return
            await asyncio.sleep(POLL_SECONDS)


def _address(pods: Sightings, model: Manifest) -> str:
    """Of the model's pod; empty while it has none."""
    uid = model["metadata"]["uid"]
    own = (p for p in pods.live.values() if p["metadata"]["labels"].get(LABEL_MODEL_UID) == uid)
    return next((str(pod["status"].get("podIP", "")) for pod in own), "")


def _schedule(config_maps: Sightings) -> str:
    """The text that stands now; empty while there is none."""
    texts = (live.get("data", {}).get(SCHEDULE_KEY) for live in config_maps.live.values())
    return next((str(text) for text in texts if text), "")
