"""Reading the API server's audit log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from local.audit import requests


def _event(at: str, verb: str, **thing: str) -> str:
    return json.dumps(
        {
            "requestReceivedTimestamp": at,
            "verb": verb,
            "user": {"username": "system:serviceaccount:speculative-system:speculative-operator"},
            "userAgent": "kopf",
            "objectRef": thing,
            "responseStatus": {"code": 200},
        }
    )


def test_only_requests_since_the_given_time_are_read(tmp_path: Path) -> None:
    """Set-up before the measured minute is not the operator at rest."""
    log = tmp_path / "audit.log"
    log.write_text(
        "\n".join(
            (
                _event("2026-11-29T18:00:00.999999Z", "patch", resource="services"),
                _event("2026-11-29T18:00:01.000000Z", "list", resource="pods"),
            )
        )
    )

    found = list(requests(datetime(2026, 11, 29, 18, 0, 1, tzinfo=UTC), log))

    assert [(request.verb, request.resource) for request in found] == [("list", "pods")]


def test_a_patch_is_a_write_and_a_watch_is_not(tmp_path: Path) -> None:
    """ "No write at rest" counts what changes the store."""
    log = tmp_path / "audit.log"
    at = "2026-11-29T18:00:01.000000Z"
    log.write_text("\n".join(_event(at, verb) for verb in ("patch", "watch", "get", "delete")))

    found = requests(datetime(2026, 11, 29, tzinfo=UTC), log)

    assert [request.verb for request in found if request.writes] == ["patch", "delete"]


def test_a_dry_run_is_no_write(tmp_path: Path) -> None:
    """GitOps tools ask for one all the time, to see whether anything differs."""
    log = tmp_path / "audit.log"
    event = json.loads(_event("2026-11-29T18:00:01.000000Z", "patch", resource="services"))
    asked = {**event, "requestURI": "/api/v1/namespaces/a/services/b?dryRun=All&force=true"}
    log.write_text(json.dumps(asked))

    (found,) = requests(datetime(2026, 11, 29, tzinfo=UTC), log)

    assert found.dry_run
    assert not found.writes
