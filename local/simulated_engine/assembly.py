"""Puts an engine together from the server's command line: shared by real and virtual time."""

from __future__ import annotations

import time
from collections.abc import Callable

from live_speculation.live import Engine as Described
from live_speculation.live import LiveSpeculation
from live_speculation.schedule import dense
from local.simulated_engine.arguments import Arguments
from local.simulated_engine.draft import Draft
from local.simulated_engine.engine import Engine
from local.simulated_engine.table import Group, read_table

VERSION = "0.33.0+simulated"


class GroupMissing(LookupError):
    """The table has no such group; the text names what it has."""


def choose_group(target: str, method: str | None, workload: str) -> Group:
    """The table's first group of these names; `method` None takes any (a plain engine)."""
    for group in read_table():
        same_method = method is None or group.method == method
        if group.target == target and group.workload == workload and same_method:
            return group
    known = sorted({f"{group.target} {group.method}" for group in read_table()})
    raise GroupMissing(
        f"no measured rows for target {target}, method {method}, workload {workload}; set "
        f"SIMULATED_TARGET, SIMULATED_METHOD or SIMULATED_WORKLOAD to one of: {'; '.join(known)}"
    )


def assemble(
    arguments: Arguments,
    draft: Draft,
    *,
    plugin: bool,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> Engine:
    """An engine as vLLM would start it. `plugin`: whether the plugin is installed."""
    speculation = arguments.speculation
    capacity = speculation.length if speculation else 0
    lookup = None
    if speculation and speculation.schedule and arguments.data_parallel == 1:
        lookup = dense(speculation.schedule, arguments.max_batch)
    engine = Engine(
        draft,
        max_batch=arguments.max_batch,
        pick=lookup.__getitem__ if lookup else lambda _: capacity,
    )
    if plugin:
        described = describe(arguments, lookup)
        engine.live = LiveSpeculation(described, clock=clock, wall=wall, load=engine.load)
    return engine


def describe(arguments: Arguments, lookup: list[int] | None) -> Described:
    """What the plugin would say of this engine, as of one on Model Runner V2."""
    speculation = arguments.speculation
    reason = ""
    if speculation is None:
        reason = "started without speculative decoding"
    elif arguments.data_parallel > 1:
        reason = (
            "data parallelism: ranks with different K would wait for each other for ever, and "
            "this page is of one rank only"
        )
    elif lookup is None:
        reason = "started without num_speculative_tokens_per_batch_size"
    return Described(
        vllm=VERSION,
        runner="V2",
        method=speculation.method if speculation else "none",
        capacity=speculation.length if speculation else 0,
        max_batch=arguments.max_batch,
        lengths=frozenset(lookup[1:] if lookup else ()),
        tunable=not reason,
        reason=reason,
    )
