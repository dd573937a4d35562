"""How often each object was put right lately: somebody who answers each repair is not fought.

Without an end to it, two writers that each act on the other's event would fill etcd.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import Final

from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.cluster.queue import Clock

MOST_REPAIRS: Final = 5
WITHIN_SECONDS: Final = 60.0


class Repairs:
    """Counts repairs by object."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._made: deque[tuple[float, Reference]] = deque()
        self._lately: Counter[Reference] = Counter()

    def too_many(self, reference: Reference) -> bool:
        """Whether the object was put right so often lately that it is left alone for now."""
        now = self._clock()
        while self._made and now - self._made[0][0] >= WITHIN_SECONDS:
            _, over = self._made.popleft()
            self._lately -= Counter((over,))
        return self._lately[reference] >= MOST_REPAIRS

    def made(self, reference: Reference) -> None:
        """The object was put right, or created, once more."""
        self._made.append((self._clock(), reference))
        self._lately[reference] += 1


def last_writer(live: Manifest, ours: str) -> str | None:
    """Who else wrote the object last, by `metadata.managedFields`; its status does not count."""
    others = [
        entry
        for entry in live["metadata"].get("managedFields", ())
        if entry["manager"] != ours and not entry.get("subresource")
    ]
    last = max(others, key=lambda entry: str(entry.get("time", "")), default=None)
    return str(last["manager"]) if last is not None else None
