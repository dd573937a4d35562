"""Two operators of one namespace, each behind a gate of its own, of which one leads."""

from __future__ import annotations

import contextlib
import itertools
import threading
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from local.access import ClusterAccess
from tests.support.api import KubernetesApi, Refused, until
from tests.support.gate import Gate, Write
from tests.support.nodeless import MODEL
from tests.support.operator_process import LEASE, OperatorProcess

TAKEOVER_GOAL = 32.0
"""Seconds: how long a Lease lasts, and two."""
TAKEOVER_LIMIT = 90.0
"""Seconds; only a test that hangs waits so long."""


@dataclass(frozen=True)
class Term:
    """One leadership, as the Lease tells of it."""

    agent: str
    """What the audit log calls whoever leads."""
    number: int
    since: datetime


@dataclass
class Replica:
    """One of the two."""

    process: OperatorProcess
    gate: Gate

    def is_ready(self) -> bool:
        """As the kubelet asks."""
        try:
            return self.process.page("/readyz") == "ok"
        except (urllib.error.URLError, OSError):
            return False

    def writes(self, since: datetime) -> list[Write]:
        """What it has begun to write since then, besides its Lease."""
        return [
            write
            for write in self.gate.writes
            if write.began >= since and write.resource != "leases"
        ]


@dataclass
class Pair:
    """The two, and all terms that there were."""

    api: KubernetesApi
    namespace: str
    replicas: tuple[Replica, Replica]
    terms: list[Term] = field(default_factory=list)

    def start(self) -> None:
        """Both at once; returns once one of them leads and both are ready."""
        for replica in self.replicas:
            replica.process.launch()
        self.next_term()
        until("both are ready", lambda: all(replica.is_ready() for replica in self.replicas))

    def leader(self) -> Replica:
        """Who holds the newest term."""
        return next(one for one in self.replicas if one.gate.agent == self.terms[-1].agent)

    def standby(self) -> Replica:
        """The other one."""
        return next(one for one in self.replicas if one.gate.agent != self.terms[-1].agent)

    def next_term(self) -> Term:
        """Returns once somebody leads anew. No term was missed: they are numbered."""
        known = self.terms[-1].number if self.terms else 0
        term = until("somebody leads", lambda: self._newer(known), timeout=TAKEOVER_LIMIT)
        assert term.number == known + 1, f"term {term.number} came after {known}"
        self.terms.append(term)
        return term

    def back(self, replica: Replica) -> None:
        """Starts one again that has ended; returns once it stands by."""
        replica.process.launch()
        until("it stands by", replica.is_ready)

    def took_over(self, since: datetime) -> str:
        """How long the newest term let one wait, in words."""
        term, leader = self.terms[-1], self.leader()
        until("it has written", lambda: leader.writes(term.since))
        first = leader.writes(term.since)[0].at
        taken = (term.since - since).total_seconds()
        return (
            f"Lease taken after {taken:.1f} s "
            f"({'below' if taken < TAKEOVER_GOAL else 'MISSED'} the {TAKEOVER_GOAL:.0f} s wanted), "
            f"first write after {(first - since).total_seconds():.1f} s"
        )

    def _newer(self, known: int) -> Term | None:
        lease = self.api.get("Lease", self.namespace, LEASE)
        spec = lease["spec"] if lease else {}
        if spec.get("leaseTransitions", 0) <= known or not spec["holderIdentity"]:
            return None
        agent = spec["holderIdentity"].rpartition("-")[0]
        since = datetime.fromisoformat(spec["acquireTime"])
        return Term(agent, spec["leaseTransitions"], since)


@contextlib.contextmanager
def pair(access: ClusterAccess, namespace: str, folder: Path) -> Iterator[Pair]:
    """Two that are not started yet; ended with the body."""
    with contextlib.ExitStack() as stack:
        replicas = []
        for number in (1, 2):
            own = folder / f"operator-{number}"
            own.mkdir()
            process = OperatorProcess(access, namespace, own, replica=f"-{number}")
            gate = stack.enter_context(Gate(access, process.name).serving())
            process.server = gate.url
            replicas.append(Replica(process, gate))
        made = Pair(KubernetesApi(access), namespace, (replicas[0], replicas[1]))
        try:
            yield made
        finally:
            for replica in replicas:
                if replica.process.process is not None:
                    replica.process.wake()
                    replica.process.kill(long_ago=False)


@contextlib.contextmanager
def edits(
    api: KubernetesApi, namespace: str, models: list[str], every: float
) -> Iterator[dict[str, int]]:
    """A user who pins the proposal length of one model after the other, until the body is left.
    Gives what is wanted of each model, which is complete once the body is left."""
    wanted: dict[str, int] = {}
    over = threading.Event()

    def edit() -> None:
        for name, length in zip(
            itertools.cycle(models), itertools.cycle((1, 2, 3, 5, 7)), strict=False
        ):
            bounds = {"spec": {"tuning": {"bounds": {"min": length, "max": length}}}}
            with contextlib.suppress(Refused, urllib3.exceptions.HTTPError):
                api.merge(MODEL, namespace, name, bounds)
                wanted[name] = length
            if over.wait(every):
                return

    thread = threading.Thread(target=edit)
    thread.start()
    try:
        yield wanted
    finally:
        over.set()
        thread.join()


def now() -> datetime:
    """With a time zone, as the audit log has it."""
    return datetime.now(UTC)
