"""What the operator costs, beside a bare client in the same run: `make benchmark`.

Simulated nodes by kwok make the pods Ready, small servers stand in for the engines. The bare client
creates a model and its children itself, over the same HTTP library: it is the floor, on the same
machine at the same time. The schedule's way to an engine is measured on the real node before that.
Prints a table, asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import operator_measures as measures
from benchmarks.bare_client import children_of, model_named
from benchmarks.operator_measures import SETTINGS, Bench
from benchmarks.operator_repairs import repair
from benchmarks.operator_rows import Row, table
from benchmarks.schedule_in_force import schedule_in_force
from local import images, install, kubectl, machine
from local.access import ClusterAccess, cluster_access
from local.kwok import PODS, simulated_nodes
from local.waiting import say
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.connection import load
from speculative_operator.plan.environment import SCHEDULE_KEY
from tests.support.api import KubernetesApi, until
from tests.support.operator_process import OperatorProcess
from tools.generate import CRD

Measure = Callable[[Bench], Awaitable[None]]


@contextlib.contextmanager
def crd() -> Iterator[None]:
    """Our kind; taken away again, with all models, where it was not there before."""
    node = machine.require()
    if kubectl.run(node, "get", f"--filename={CRD}", "--ignore-not-found"):
        yield
        return
    kubectl.run(node, "create", f"--filename={CRD}")
    try:
        # Established says that the API server is to serve the kind, not that it does.
        until("the API server serves our kind", lambda: _served(node))
        yield
    finally:
        kubectl.run(node, "delete", f"--filename={CRD}", "--wait=false")


def _served(node: machine.Machine) -> bool:
    try:
        kubectl.run(node, "get", "speculativemodels", "--all-namespaces")
    except kubectl.KubectlError:
        return False
    return True


@contextlib.contextmanager
def nobody_else(api: KubernetesApi) -> Iterator[None]:
    """An installed operator rests meanwhile: it would act on the same models."""
    where = ("Deployment", install.NAMESPACE, install.RELEASE)
    installed = api.get(*where)
    if installed is None:
        yield
        return
    api.merge(*where, {"spec": {"replicas": 0}})
    try:
        until("the installed operator rests", lambda: not api.all("Pod", install.NAMESPACE))
        yield
    finally:
        api.merge(*where, {"spec": {"replicas": installed["spec"]["replicas"]}})


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


@contextlib.contextmanager
def operator(access: ClusterAccess, namespace: str, plugin: str) -> Iterator[OperatorProcess]:
    """An operator that looks at one namespace."""
    with tempfile.TemporaryDirectory() as folder:
        process = OperatorProcess(access, namespace, Path(folder), plugin_image=plugin)
        process.start()
        try:
            yield process
        finally:
            process.stop()


def start_schedule() -> str:
    """What the operator writes for the models of this benchmark at first."""
    children = children_of(model_named("-", "-"), SETTINGS)
    return next(
        str(child["data"][SCHEDULE_KEY])
        for child in children
        if SCHEDULE_KEY in child.get("data", {})
    )


async def measure(access: ClusterAccess, *steps: Measure) -> list[Row]:
    """The steps one after the other, with an operator and two namespaces of their own."""
    rows: list[Row] = []
    configuration = await load(access.kubeconfig, access.context)
    async with Client(configuration) as client:
        with (
            namespaces(KubernetesApi(access)) as (ours, theirs),
            operator(access, ours, images.reference("vllm-plugin")) as process,
        ):
            bench = Bench(configuration, client, process, ours, theirs, rows)
            for step in steps:
                await step(bench)
    return rows


def main() -> None:
    """Needs the local cluster and its images; run it inside the cluster's network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="for the measurement of memory")
    models = parser.parse_args().models
    access = cluster_access()
    began, load_before = time.monotonic(), os.getloadavg()

    async def memory(bench: Bench) -> None:
        await measures.memory(bench, models)

    with crd(), nobody_else(KubernetesApi(access)):
        say("the way of a schedule, on the real node")
        rows = asyncio.run(measure(access, schedule_in_force))
        nodes = -(-(models + measures.BURST + measures.ONE_BY_ONE) // PODS)
        with simulated_nodes(nodes, gpus=PODS), engines(start_schedule()):
            say("many models, on simulated nodes")
            steps = (measures.one_by_one, measures.burst, repair, measures.rest, measures.restart)
            rows += asyncio.run(measure(access, *steps, memory))
    print(table(rows))
    print(
        f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; "
        f"load average {_words(load_before)} at the start, {_words(os.getloadavg())} at the end; "
        f"{time.monotonic() - began:.0f} s"
    )


def _words(load: Sequence[float]) -> str:
    return " ".join(f"{average:.1f}" for average in load)


if __name__ == "__main__":
    main()
