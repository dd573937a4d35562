"""How long drift stands: a deleted Service, an edited image. The floor repairs by its own watch."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from benchmarks.bare_client import watching
from benchmarks.operator_measures import REPAIRS, Bench
from benchmarks.operator_rows import Row, Spread
from speculative_operator.cluster.manifests import Manifest
from tests.support.operator_process import ENGINE_IMAGE

Repair = Callable[[Manifest], Awaitable[object]]
"""Brings an object back as it was: it is given the state before."""

LIMIT_DELETED_MS, LIMIT_EDITED_MS = 23, 41
"""The best peer's: a deleted child back, an edited image restored."""


async def repair(bench: Bench) -> None:
    """Somebody deletes a child, somebody edits an image."""

    async def create(live: Manifest) -> None:
        kept = ("name", "namespace", "labels", "ownerReferences")
        metadata = {key: live["metadata"][key] for key in kept}
        await bench.client.create({**live, "metadata": metadata})

    async def merge(live: Manifest) -> None:
        await bench.client.merge("Deployment", live["metadata"], _containers(live))

    deleted, edited, floor_deleted, floor_edited = [], [], [], []
    for number in range(REPAIRS):
        name = f"single-{number}"
        deleted.append(await _delete(bench, bench.ours, name))
        floor_deleted.append(await _delete(bench, bench.theirs, name, create))
        other = f"single-{REPAIRS + number}"  # a model at rest
        edited.append(await _edit(bench, bench.ours, other))
        floor_edited.append(await _edit(bench, bench.theirs, other, merge))
    for what, found, floor, limit in (
        ("a deleted child is back, p50/p95 ms", deleted, floor_deleted, LIMIT_DELETED_MS),
        ("an edited image is restored, p50/p95 ms", edited, floor_edited, LIMIT_EDITED_MS),
    ):
        spread = Spread.of(found)
        bench.add(
            Row(
                what,
                str(spread),
                str(Spread.of(floor)),
                str(limit),
                f"below {limit}",
                spread.p50 < limit,
            )
        )


async def _delete(bench: Bench, namespace: str, name: str, repair: Repair | None = None) -> float:
    async with watching(bench.configuration, "Service", namespace) as services:
        await services.until(lambda: name in services.live)
        live = services.live[name]
        began = time.perf_counter()
        await bench.client.delete("Service", live["metadata"])
        if repair is not None:
            await services.until(lambda: name not in services.live)
            await repair(live)
        await services.until(lambda: services.seen.get(name, 0.0) > began)
        return services.seen[name] - began


async def _edit(bench: Bench, namespace: str, model: str, repair: Repair | None = None) -> float:
    async with watching(bench.configuration, "Deployment", namespace) as deployments:
        await deployments.until(lambda: any(n.startswith(f"{model}-") for n in deployments.live))
        name = next(n for n in deployments.live if n.startswith(f"{model}-"))
        live = deployments.live[name]

        def image() -> str:
            template = deployments.live[name]["spec"]["template"]
            return str(template["spec"]["containers"][0]["image"])

        began = time.perf_counter()
        wrong = _containers(live, image="somebody/else:1")
        await bench.client.merge("Deployment", live["metadata"], wrong)
        await deployments.until(lambda: image() != ENGINE_IMAGE)
        if repair is not None:
            await repair(live)
        await deployments.until(lambda: image() == ENGINE_IMAGE)
        return time.perf_counter() - began


def _containers(live: Manifest, **changes: str) -> Manifest:
    """The change that sets a Deployment's containers to those of `live`, with `changes` in each."""
    containers = live["spec"]["template"]["spec"]["containers"]
    changed = [{**container, **changes} for container in containers]
    return {"spec": {"template": {"spec": {"containers": changed}}}}
