"""What is measured of the operator on a cluster whose pods kwok plays, and of the bare client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kubernetes.aio.client import Configuration

from benchmarks.bare_client import BareClient, Sightings, children_of, model_named, watching
from benchmarks.operator_counters import Counters
from benchmarks.operator_rows import Row, Spread
from local.waiting import say
from speculative_operator.cluster.client import Client
from speculative_operator.plan.settings import Settings
from tests.support.operator_process import ENGINE_IMAGE, PLUGIN_IMAGE, OperatorProcess

ONE_BY_ONE = 20
BURST = 200
REPAIRS = 10
SETTLED_SECONDS = 5
REST_SECONDS = 60
RESTARTED_SECONDS = 30
STATUS_WRITES = 2
AT_ONCE = 16
SETTINGS = Settings(ENGINE_IMAGE, PLUGIN_IMAGE)

Create = Callable[[str], Awaitable[object]]


@dataclass(frozen=True)
class Bench:
    """What the measurements work with: the operator's namespace is `ours`, the floor's `theirs`."""

    configuration: Configuration
    client: Client
    operator: OperatorProcess
    ours: str
    theirs: str
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """A line of the result; shown at once, since the others take their time."""
        self.rows.append(row)
        beside = f" (bare client: {row.bare})" if row.bare else ""
        say(f"{row.what}: {row.operator}{beside}")

    def counted(self) -> Counters:
        """The operator's own counters now."""
        return Counters.read(self.operator.page("/metrics"))

    async def create(self, name: str) -> None:
        """A model for the operator."""
        await self.client.create(model_named(self.ours, name))

    async def create_bare(self, name: str) -> None:
        """A model with its children by the bare client."""
        await BareClient(self.client, SETTINGS).create(self.theirs, name)


async def one_by_one(bench: Bench) -> None:
    """Apply to Deployment on an idle cluster; both take turns, so that both meet the same load."""
    took: dict[str, list[float]] = {bench.ours: [], bench.theirs: []}
    async with (
        watching(bench.configuration, "Deployment", bench.ours) as ours,
        watching(bench.configuration, "Deployment", bench.theirs) as theirs,
    ):
        for number in range(ONE_BY_ONE):
            name = f"single-{number}"
            for namespace, seen, create in (
                (bench.ours, ours, bench.create),
                (bench.theirs, theirs, bench.create_bare),
            ):
                took[namespace].append(await _first_seen(seen, name, create))
                await asyncio.sleep(1.5)  # the pods come up, the model's status is written
    found, floor = Spread.of(took[bench.ours]), Spread.of(took[bench.theirs])
    bench.add(
        Row(
            "apply to Deployment, p50/p95 ms",
            str(found),
            str(floor),
            "38/57",
            "below 38/57, aim 24/41",
            found.p50 < 38 and found.p95 < 57,
        )
    )


async def _first_seen(deployments: Sightings, name: str, create: Create) -> float:
    began = time.perf_counter()
    creating = asyncio.ensure_future(create(name))
    await deployments.until(lambda: any(seen.startswith(f"{name}-") for seen in deployments.seen))
    await creating
    at = next(at for seen, at in deployments.seen.items() if seen.startswith(f"{name}-"))
    return at - began


async def burst(bench: Bench) -> None:
    """Many models at once: children of all kinds a second, and what a model costs."""
    children = len(children_of(model_named("-", "-"), SETTINGS))
    before = bench.counted()
    rate = BURST * children / await _burst(bench, bench.ours, bench.create)
    async with all_ready(bench, "burst-", BURST):
        say("all Deployments are there")
    spent = bench.counted() - before
    began = time.process_time()
    floor = BURST * children / await _burst(bench, bench.theirs, bench.create_bare)
    floor_cpu = (time.process_time() - began) / BURST * 1000
    bench.add(
        Row(
            f"burst of {BURST}, children a second",
            f"{rate:.0f}",
            f"{floor:.0f}",
            "21",
            "21",
            rate >= 21,
        )
    )
    cpu = spent.cpu_seconds / BURST * 1000
    bench.add(
        Row("CPU a model, to Ready, ms", f"{cpu:.0f}", f"{floor_cpu:.0f}", "21", "50", cpu < 50)
    )
    requests, events = (spent.reads + spent.writes) / BURST, spent.events / BURST
    most = children + STATUS_WRITES
    bench.add(
        Row(
            "requests a model, to Ready, and Events",
            f"{requests:.2f} + {events:.2f}",
            str(children),
            "2.5",
            f"{children} children + {STATUS_WRITES} of status",
            requests <= most,
        )
    )


async def _burst(bench: Bench, namespace: str, create: Create) -> float:
    """Seconds from the first model's creation to the last Deployment's."""
    async with watching(bench.configuration, "Deployment", namespace) as deployments:
        began = time.perf_counter()
        await create_all([f"burst-{number}" for number in range(BURST)], create)
        await deployments.until(lambda: _count(deployments, "burst-") == BURST)
        return max(deployments.seen.values()) - began


async def create_all(names: list[str], create: Create) -> None:
    """Some at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with turns:
            await create(name)

    await asyncio.gather(*(one(name) for name in names))


@asynccontextmanager
async def all_ready(bench: Bench, prefix: str, count: int) -> AsyncIterator[None]:
    """Leaves once as many models are Ready, and what follows from that was written."""
    async with watching(bench.configuration, "SpeculativeModel", bench.ours) as models:
        yield
        async with asyncio.timeout(600):
            told = 0
            while told < count:
                await asyncio.sleep(1)
                ready = sum(n.startswith(prefix) and _is_ready(models, n) for n in models.live)
                if ready // 100 > told // 100:
                    say(f"{ready} of {count} models are Ready")
                told = ready
            await asyncio.sleep(3)


def _is_ready(models: Sightings, name: str) -> bool:
    conditions = models.live[name].get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _count(sightings: Sightings, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in sightings.seen)


async def rest(bench: Bench) -> None:
    """Nothing happens for a minute, after all that was begun has ended."""
    await _settled(bench)
    before = bench.counted()
    await asyncio.sleep(REST_SECONDS)
    spent = bench.counted() - before
    requests = spent.reads + spent.writes
    bench.add(
        Row(
            f"at rest for {REST_SECONDS} s: requests (writes)",
            f"{requests:.0f} ({spent.writes:.0f})",
            best_peer="0 (0)",
            goal="0 (0)",
            met=requests == 0,
        )
    )
    bench.add(
        Row("at rest: CPU %", f"{spent.cpu_seconds / REST_SECONDS * 100:.1f}", best_peer="2.5")
    )


async def _settled(bench: Bench) -> None:
    writes, still_for = bench.counted().writes, 0
    async with asyncio.timeout(120):
        while still_for < SETTLED_SECONDS:
            await asyncio.sleep(1)
            now = bench.counted().writes
            writes, still_for = now, still_for + 1 if now == writes else 0


async def restart(bench: Bench) -> None:
    """A new process finds everything as it should be."""
    bench.operator.stop()
    bench.operator.start()
    await asyncio.sleep(RESTARTED_SECONDS)
    writes = bench.counted().writes
    bench.add(
        Row("writes after a restart", f"{writes:.0f}", best_peer="0", goal="0", met=writes == 0)
    )


async def memory(bench: Bench, models: int) -> None:
    """As many models as asked for, those that are there counted."""
    missing = max(0, models - BURST - ONE_BY_ONE)
    models = missing + BURST + ONE_BY_ONE
    say(f"memory: {missing} more models")
    async with all_ready(bench, "many-", missing):
        await create_all([f"many-{number}" for number in range(missing)], bench.create)
    used = bench.counted().memory_bytes / 1e6
    bench.add(
        Row(
            f"memory with {models} models, MB",
            f"{used:.0f}",
            best_peer="59 (200)",
            goal="150" if models == 1000 else "",
            met=used <= 150 if models == 1000 else None,
        )
    )
