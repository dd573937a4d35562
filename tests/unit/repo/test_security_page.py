"""docs/security.md says what the operator may do, as the chart grants it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.helm import RELEASE, rendered
from tests.support.pages import DOCS
from tests.support.rights import rules_of

VERB = re.compile(r"\b(get|list|watch|create|update|patch|delete|deletecollection)\b")


def told() -> Iterator[tuple[str, str]]:
    """Resource and verb, from the first table of the page."""
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", (DOCS / "security.md").read_text(), re.MULTILINE)
    for resources, verbs in rows:
        for resource in re.findall(r"`([a-z/]+)`", resources):
            yield from ((resource, verb) for verb in VERB.findall(verbs))


def granted() -> Iterator[tuple[str, str]]:
    """Resource and verb of every role that is bound to the operator's account."""
    for rule in rules_of(RELEASE, rendered(rbac={"capacity": True})):
        yield from ((resource, verb) for resource in rule["resources"] for verb in rule["verbs"])


def test_the_page_lists_what_the_chart_grants_and_nothing_else() -> None:
    """Somebody decides by this page whether the operator may enter a cluster."""
    assert sorted(set(told())) == sorted(set(granted()))
