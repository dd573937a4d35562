"""Wiring only: read it and know the process.

    watch    kopf, in every replica, from the start: feeds copies and the queue
    lead     once this process holds the Lease: the queue's workers, the tuner, Events
    serve    probes and metrics, from the start

Whichever of them ends, by an error or a lost Lease, ends the process: a restart is the cure.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import aiohttp
import kopf
from kubernetes.aio.client import Configuration
from prometheus_client import disable_created_metrics

from speculative_operator.cluster.audit import until_complete
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.client import Client
from speculative_operator.cluster.connection import bearer_token, load
from speculative_operator.cluster.events import EventRecorder
from speculative_operator.cluster.lease import Lease
from speculative_operator.cluster.manifests import Reference
from speculative_operator.cluster.queue import WorkQueue
from speculative_operator.controller import logs
from speculative_operator.controller.handlers import (
    EXIT_SECONDS,
    Watcher,
    scope_of,
    watch_settings,
)
from speculative_operator.controller.kubernetes_ports import (
    KubernetesMemory,
    KubernetesReport,
    KubernetesSchedules,
    WallClock,
)
from speculative_operator.controller.metrics.metrics import Metrics
from speculative_operator.controller.options import Options, read_options
from speculative_operator.controller.reconcile import Reconciler, Tools
from speculative_operator.controller.resync import resync
from speculative_operator.controller.seen.capacity import Capacity
from speculative_operator.controller.seen.names_check import NamesCheck
from speculative_operator.controller.server import Server
from speculative_operator.controller.trials.checks import TrialChecks
from speculative_operator.controller.tuner.fleet import ModelFleet
from speculative_operator.controller.tuner.page_sources import PageSources
from speculative_operator.controller.tuner.ports import Ports
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.engine.client import Engines
from speculative_operator.engine.prometheus import Prometheus


async def operate(options: Options) -> None:
    """Runs the operator until it is told to stop or must."""
    # One series more for each counter, which nobody asks for.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    configuration = await load(options.kubeconfig)
    metrics = Metrics()
    async with Client(configuration, metrics.request) as client, aiohttp.ClientSession() as session:
        operator = Operator(options, configuration, metrics, client, session)
        async with Server(options.port, metrics.registry, unready=operator.lease.unknown):
            await operator.run()


class Operator:
    """The rooms of one process, put together."""

    def __init__(
        self,
        options: Options,
        configuration: Configuration,
        metrics: Metrics,
        client: Client,
        session: aiohttp.ClientSession,
    ) -> None:
        self.options = options
        self.configuration = configuration
        self.client = client
        self.scope = scope_of(options.namespaces)
        self.lease = Lease(client, options.lease)
        writer = client.guarded(self.lease.must_lead)
        self.events = EventRecorder(writer, instance=options.lease.identity)
        self.queue: WorkQueue[Reference] = WorkQueue(time.monotonic)
        metrics.watch_queue(self.queue)
        metrics.watch_lease(lambda: self.lease.term)
        cache = self.cache = Cache()
        self.watcher = Watcher(cache, self.queue.add)
        children = Children(writer, cache)
        engines, known = Engines(session), options.prometheus
        prometheus = Prometheus(session, known) if known is not None else None
        fleet = ModelFleet()
        metrics.watch_models(fleet.told)
        tools = Tools(
            cache=cache,
            children=children,
            settings=options.settings,
            names=NamesCheck(engines.served_names, sleep=asyncio.sleep),
            trials=TrialChecks(engines, clock=time.time, sleep=asyncio.sleep),
            fleet=fleet,
            events=self.events,
            again=self.queue.add,
            failed=metrics.failed,
            clock=time.time,
            capacity=Capacity(client, time.time) if options.capacity else None,
        )
        self.work = metrics.timed(Reconciler(tools).work)
        self.tuner = Tuner(
            Ports(
                clock=WallClock(),
                fleet=fleet,
                pages=PageSources(engines, prometheus, metrics.timed_read),
                schedules=KubernetesSchedules(cache, children),
                memories=KubernetesMemory(cache, children),
                report=KubernetesReport(fleet, self.events, self.queue.add),
            ),
            lease=lambda: self.lease.term,
        )

    async def run(self) -> None:
        """Watches and leads until a signal comes or one of both ends, then ends the rest."""
        stopped = asyncio.Event()
        parts = [
            asyncio.create_task(part, name=name)
            for name, part in (
                ("signals", stopped.wait()),
                ("watch", self._watch(stopped)),
                ("lead", self._lead()),
            )
        ]
        ended, rest = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for part in rest:
            part.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for part in ended:
            part.result()

    async def _watch(self, stopped: asyncio.Event) -> None:
        """kopf's tasks without its own ending, which cancels whatever runs in this loop."""
        registry = self.watcher.registry()
        kopf.on.login(registry=registry)(self._login)
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=watch_settings(),
            clusterwide=not self.options.namespaces,
            namespaces=self.options.namespaces,
            identity=self.options.lease.identity,  # type: ignore[arg-type] # a str with a name
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=EXIT_SECONDS / 2)

    async def _login(self, **_: object) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=self.configuration.host,
            ca_path=self.configuration.ssl_ca_cert,
            certificate_path=self.configuration.cert_file,
            private_key_path=self.configuration.key_file,
            token=await bearer_token(self.configuration),
        )

    async def _lead(self) -> None:
        """Works while the Lease is held, and lets go of it at the end."""
        await self.lease.acquire()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.lease.keep())
                await until_complete(self.client, self.cache, self.scope)
                tasks.create_task(self.queue.run(self.work, workers=self.options.workers))
                tasks.create_task(self.tuner.run())
                tasks.create_task(self.events.run())
                tasks.create_task(resync(self.client, self.cache, self.scope, again=self.queue.add))
        finally:
            await self.lease.release()


def main() -> None:
    """The process's entry."""
    options = read_options(sys.argv[1:], os.environ)
    logs.set_up(options.log_level)
    asyncio.run(operate(options))


if __name__ == "__main__":
    main()
