"""Pods that wait for GPUs: how many, for what, why, and which node is close."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from speculative_operator.api.conditions import Reason
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod, Trouble
from speculative_operator.plan.capacity import Need, Stock, need_of

FOR_GPUS = frozenset({Reason.WAITING_FOR_GPUS, Reason.NO_NODE_FITS})


def waits_for_gpus(pod: Pod) -> bool:
    """Whether the scheduler finds no GPUs for it."""
    return pod.alive and pod.trouble is not None and pod.trouble.reason in FOR_GPUS


def waiting(seen: Observed, stock: Stock | None) -> Iterator[Trouble]:
    """One trouble for each kind of need. `stock` is what was counted for the newest of them."""
    by_need: dict[Need, list[Pod]] = defaultdict(list)
    for pod in seen.pods:
        if waits_for_gpus(pod):
            by_need[_need(pod, seen)].append(pod)
    for need, pods in by_need.items():
        counted = stock if stock is not None and stock.need == need else None
        yield _trouble(need, pods, counted)


def _trouble(need: Need, pods: list[Pod], stock: Stock | None) -> Trouble:
    first = pods[0].trouble
    reason, words = (first.reason, first.message) if first is not None else (Reason.STARTING, "")
    if stock is not None:
        reason = Reason.WAITING_FOR_GPUS if stock.ever else Reason.NO_NODE_FITS
    many = f"{len(pods)} pods wait" if len(pods) > 1 else f"Pod {pods[0].name} waits"
    in_all = f" each, {need.count * len(pods)} in all" if len(pods) > 1 else ""
    close = f" Closest: {stock}." if stock is not None else ""
    return Trouble(reason, f"{many} for {need}{in_all}.{close} The scheduler: {words}")


def _need(pod: Pod, seen: Observed) -> Need:
    record = seen.revisions.get(pod.revision)
    return need_of(record.recorded.template) if record is not None else Need("amd.com/gpu", 0)
