"""Rights as sets: what is granted and what was used have the same names."""

from __future__ import annotations

from datetime import UTC, datetime

from local.audit import Request
from tests.support.rights import Right, explained, granted, used


def a_request(verb: str, group: str, resource: str, subresource: str = "", **more: int) -> Request:
    return Request(
        at=datetime.now(UTC),
        user="operator",
        agent="",
        verb=verb,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace="prod",
        name="",
        code=more.get("code", 200),
        dry_run=False,
    )


def test_what_is_granted_and_used_is_the_same_right() -> None:
    """With its group and its subresource, or two kinds of events would be one."""
    rules = [
        {"apiGroups": ["speculation.dev"], "resources": ["models/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    ]
    requests = [
        a_request("patch", "speculation.dev", "models", "status"),
        a_request("list", "", "pods"),
        a_request("watch", "", "pods"),
    ]

    assert granted(rules) == used(requests, "operator")
    assert Right("patch", "models.speculation.dev/status") in granted(rules)


def test_what_was_refused_or_asked_by_others_was_not_used() -> None:
    """It shows nothing of what the right is needed for."""
    requests = [a_request("list", "", "pods", code=403)]

    assert used(requests, "operator") == set()
    assert used([a_request("list", "", "pods")], "somebody") == set()


def test_a_line_in_the_template_explains_a_right() -> None:
    """It names verb and resource, and says why."""
    template = """
    # not seen in tests: delete serviceaccounts: where a model names another account
    # of no account: delete pods
    """

    assert list(explained(template)) == [Right("delete", "serviceaccounts")]
