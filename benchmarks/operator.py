"""What the operator costs, beside a bare client in the same run: `python -m benchmarks.operator`.

Simulated nodes by kwok make the pods Ready, small servers stand in for the engines. The bare client
creates a model and its children itself, over the same HTTP library: it is the floor, on the same
machine at the same time. Prints figures, asserts none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubernetes.aio.client import Configuration

from benchmarks.bare_client import BareClient, Sightings, children_of, model_named, watching
from benchmarks.operator_counters import Counters
from local.access import ClusterAccess, cluster_access
from local.kwok import PODS, simulated_nodes
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.connection import load
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.plan.environment import SCHEDULE_KEY
from speculative_operator.plan.settings import Settings
from tests.support.api import KubernetesApi
from tests.support.operator_process import ENGINE_IMAGE, PLUGIN_IMAGE, OperatorProcess

ONE_BY_ONE = 30
BURST = 200
REPAIRS = 10
REST_SECONDS = 60
SETTINGS = Settings(ENGINE_IMAGE, PLUGIN_IMAGE)


@dataclass(frozen=True)
class Bench:
    """What the measurements work with: the operator's namespace is `ours`, the floor's `theirs`."""

    configuration: Configuration
    client: Client
    bare: BareClient
    operator: OperatorProcess
    ours: str
    theirs: str

    def counted(self) -> Counters:
        """The operator's own counters now."""
        return Counters.read(self.operator.page("/metrics"))

    async def create(self, name: str) -> None:
        """A model for the operator."""
        await self.client.create(model_named(self.ours, name))


async def one_by_one(bench: Bench) -> None:
    """Apply to Deployment on an idle cluster."""
    for who, namespace, create in (
        ("operator", bench.ours, bench.create),
        ("bare client", bench.theirs, lambda name: bench.bare.create(bench.theirs, name)),
    ):
        took = []
        async with watching(bench.configuration, "Deployment", namespace) as deployments:
            for number in range(ONE_BY_ONE):
                took.append(await _first_seen(deployments, f"single-{number}", create))
                await asyncio.sleep(0.5)
        say(f"apply to Deployment, one by one, {who}", *_spread(took))


async def _first_seen(
    deployments: Sightings, name: str, create: Callable[[str], Awaitable[object]]
) -> float:
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
    seconds = await _burst(bench, bench.ours, bench.create)
    say(f"burst of {BURST}, operator", f"{BURST * children / seconds:.0f} children a second")
    await _all_ready(bench, "burst-")
    spent = bench.counted() - before
    seconds = await _burst(bench, bench.theirs, lambda n: bench.bare.create(bench.theirs, n))
    say(f"burst of {BURST}, bare client", f"{BURST * children / seconds:.0f} children a second")
    say(
        "a model, from apply to Ready",
        f"{spent.cpu_seconds / BURST * 1000:.0f} ms CPU",
        f"{spent.reads / BURST:.2f} reads",
        f"{spent.writes / BURST:.2f} writes (children {children}, status)",
        f"{spent.events / BURST:.2f} Events",
    )


async def _burst(bench: Bench, namespace: str, create: Callable[[str], Awaitable[object]]) -> float:
    names = [f"burst-{number}" for number in range(BURST)]
    async with watching(bench.configuration, "Deployment", namespace) as deployments:
        began = time.perf_counter()
        gate = asyncio.Semaphore(16)

        async def one(name: str) -> None:
            async with gate:
                await create(name)

        await asyncio.gather(*(one(name) for name in names))
        await deployments.until(
            lambda: sum(name.startswith("burst-") for name in deployments.seen) == BURST
        )
        return max(deployments.seen.values()) - began


async def _all_ready(bench: Bench, prefix: str) -> None:
    def ready(model: Manifest) -> bool:
        conditions = model.get("status", {}).get("conditions", ())
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    async with asyncio.timeout(600):
        while True:
            async with watching(bench.configuration, "SpeculativeModel", bench.ours) as models:
                await asyncio.sleep(2)
                ours = [m for name, m in models.live.items() if name.startswith(prefix)]
            if ours and all(ready(model) for model in ours):
                await asyncio.sleep(3)
                return


async def repair(bench: Bench) -> None:
    """Somebody deletes a child, somebody edits an image."""
    gone, edited = [], []
    for number in range(REPAIRS):
        service = Reference("Service", bench.ours, f"single-{number}")
        live = await bench.client.read(service)
        assert live is not None
        async with watching(bench.configuration, "Service", bench.ours) as services:
            await services.until(lambda: service.name in services.live)  # noqa: B023
            began = time.perf_counter()
            await bench.client.delete("Service", live["metadata"])
            await services.until(lambda: services.seen.get(service.name, 0) > began)  # noqa: B023
            gone.append(services.seen[service.name] - began)
        edited.append(await _edit_image(bench, f"single-{number}-"))
    say("a deleted child is back after", *_spread(gone))
    say("an edited image is restored after", *_spread(edited))


async def _edit_image(bench: Bench, prefix: str) -> float:
    async with watching(bench.configuration, "Deployment", bench.ours) as deployments:
        await deployments.until(lambda: any(n.startswith(prefix) for n in deployments.live))
        name = next(n for n in deployments.live if n.startswith(prefix))
        containers = deployments.live[name]["spec"]["template"]["spec"]["containers"]
        wrong = [{**container, "image": "somebody/else:1"} for container in containers]
        change = {"spec": {"template": {"spec": {"containers": wrong}}}}

        def image() -> str:
            template = deployments.live[name]["spec"]["template"]
            return str(template["spec"]["containers"][0]["image"])

        began = time.perf_counter()
        await bench.client.merge("Deployment", deployments.live[name]["metadata"], change)
        await deployments.until(lambda: image() != ENGINE_IMAGE)
        await deployments.until(lambda: image() == ENGINE_IMAGE)
        return time.perf_counter() - began


async def rest(bench: Bench) -> None:
    """Nothing happens for a minute."""
    before = bench.counted()
    await asyncio.sleep(REST_SECONDS)
    spent = bench.counted() - before
    say(
        f"{REST_SECONDS} s at rest",
        f"{spent.reads:.0f} reads",
        f"{spent.writes:.0f} writes",
        f"{spent.cpu_seconds / REST_SECONDS:.1%} CPU",
    )


async def restart(bench: Bench) -> None:
    """A new process finds everything as it should be."""
    bench.operator.stop()
    bench.operator.start()
    await asyncio.sleep(REST_SECONDS)
    counted = bench.counted()
    say("after a restart", f"{counted.writes:.0f} writes", f"{counted.reads:.0f} reads")


async def memory(bench: Bench, models: int) -> None:
    """As many models as asked for."""
    names = [f"many-{number}" for number in range(models - BURST - ONE_BY_ONE)]
    for start in range(0, len(names), 50):
        await asyncio.gather(*(bench.create(name) for name in names[start : start + 50]))
    if names:
        await _all_ready(bench, "many-")
    say(f"memory with {models} models", f"{bench.counted().memory_bytes / 1e6:.0f} MB")


@contextlib.contextmanager
def engines(schedule: str) -> Iterator[None]:
    """Stand-ins for engines that have taken up `schedule`, in a process of their own."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(schedule)
        file.flush()
        command = [sys.executable, "-m", "benchmarks.idle_engines", file.name]
        process = subprocess.Popen(command)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def namespaces(api: KubernetesApi) -> Iterator[tuple[str, str]]:
    """One for the operator, one for the bare client; deleted afterwards."""
    stamp = int(time.time())
    names = (f"bench-operator-{stamp}", f"bench-bare-{stamp}")
    for name in names:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield names
    finally:
        for name in names:
            api.delete("Namespace", None, name)


def start_schedule() -> str:
    """What the operator writes for the models of this benchmark at first."""
    children = children_of(model_named("-", "-"), SETTINGS)
    return next(
        str(child["data"][SCHEDULE_KEY])
        for child in children
        if SCHEDULE_KEY in child.get("data", {})
    )


async def measure(
    access: ClusterAccess, operator: OperatorProcess, ours: str, theirs: str, models: int
) -> None:
    """All measurements, one after the other."""
    configuration = await load(access.kubeconfig, access.context)
    async with Client(configuration) as client:
        bench = Bench(configuration, client, BareClient(client, SETTINGS), operator, ours, theirs)
        await one_by_one(bench)
        await burst(bench)
        await repair(bench)
        await rest(bench)
        await restart(bench)
        await memory(bench, models)


def main() -> None:
    """Needs the local cluster; run it inside its network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="for the measurement of memory")
    models = parser.parse_args().models
    access = cluster_access()
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    with (
        simulated_nodes(-(-(models + BURST + ONE_BY_ONE) // PODS), gpus=PODS),
        namespaces(KubernetesApi(access)) as (ours, theirs),
        engines(start_schedule()),
        tempfile.TemporaryDirectory() as folder,
    ):
        operator = OperatorProcess(access, ours, Path(folder))
        operator.start()
        try:
            asyncio.run(measure(access, operator, ours, theirs, models))
        finally:
            operator.stop()


def say(what: str, *figures: str) -> None:
    """One line of the result."""
    print(f"{what:<48} {'  '.join(figures)}", flush=True)


def _spread(seconds: Sequence[float]) -> tuple[str, str]:
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"p50 {statistics.median(ordered) * 1000:.0f} ms", f"p95 {high * 1000:.0f} ms"


if __name__ == "__main__":
    main()
