"""What was asked of the local cluster's API server, from its audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from local.layout import AUDIT_LOG

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    """One answered request. `name` is empty for lists and for objects that the server names. A dry
    run is asked with a write's verb, and writes nothing."""

    at: datetime
    user: str
    agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    dry_run: bool

    @property
    def writes(self) -> bool:
        return self.verb in WRITES and not self.dry_run


def requests(since: datetime, file: Path = AUDIT_LOG) -> Iterator[Request]:
    """The requests received at or after `since` (with a time zone), in the order of their answers.

    A watch is written twice, when it starts and when it ends. A request is in the log before the
    client has its answer.
    """
    with file.open(encoding="utf-8") as log:
        for line in log:
            event = json.loads(line)
            if (at := datetime.fromisoformat(event["requestReceivedTimestamp"])) >= since:
                thing = event.get("objectRef", {})
                yield Request(
                    at=at,
                    user=event["user"].get("username", ""),
                    agent=event.get("userAgent", ""),
                    verb=event["verb"],
                    group=thing.get("apiGroup", ""),
                    resource=thing.get("resource", ""),
                    subresource=thing.get("subresource", ""),
                    namespace=thing.get("namespace", ""),
                    name=thing.get("name", ""),
                    code=event.get("responseStatus", {}).get("code", 0),
                    dry_run="dryRun=" in event.get("requestURI", ""),
                )
